"""The three kinds of Transformer: which tokens see which, by their masks and by what reaches what."""

import torch
from torch import Tensor

from model.config import AudioConfig, StackConfig, TransformerConfig
from model.labs.bench import Bench
from model.labs.described import describe
from model.labs.miniature import Arrived, arrived, miniature
from model.labs.parameters.families import Archetypes
from model.labs.published import published
from model.labs.result import Axis, Check, Heatmap, Result
from model.labs.stated import read_config
from model.labs.words import counted
from model.masks import allowed, sees_ahead
from model.rules import Causal, MaskRule, ScoreRule, Window
from model.scores import Stage, attention

# A change above this has arrived; what comes from a token that is not seen is rounding in fp64, about 1e-15.
ARRIVED = 1e-9
HEAD_WIDTH = 16


def run(parameters: Archetypes, _bench: Bench) -> Result:
    """Masks of three architectures, and what reaches what in a small random model of each."""
    tokens, source, models = parameters.tokens, parameters.source, published().models
    names = (parameters.encoder_only, parameters.decoder_only, parameters.encoder_decoder)
    configs = [read_config(models[name].config).config for name in names]
    titles = [models[name].title for name in names]
    found = [
        arrived(miniature(config, parameters.seed), tokens, source, parameters.seed) for config in configs
    ]
    stacks = [config.stack for config in configs]
    series = [
        _mask("mask-encoder", titles[0], stacks[0].mask_of("encoder.self.0"), tokens, tokens),
        _mask("mask-decoder", titles[1], stacks[1].mask_of("decoder.self.0"), tokens, tokens),
        _mask(
            "mask-cross",
            f"{titles[2]}, cross-attention",
            stacks[2].mask_of("decoder.cross.0"),
            tokens,
            source,
        ),
        _scores(tokens, parameters.seed),
        *_reached(titles, found),
    ]
    facts = {
        "archetypes": [_drawn(title, config) for title, config in zip(titles, configs, strict=True)],
        "tokens": tokens,
        "source": source,
        "all_pairs": tokens**2,
        "open_pairs": tokens * (tokens + 1) // 2,
        "forbidden_pairs": tokens * (tokens - 1) // 2,
        "cross_pairs": tokens * source,
    }
    checks = _checks(parameters, series, found[2].own)
    return Result(series, checks, facts, _notes(titles[1], stacks[1], tokens))


def _checks(parameters: Archetypes, series: list[Heatmap], target: Tensor) -> list[Check]:
    """Pairs that may see each other: by arithmetic, in the masks that are drawn, and in what reached what."""
    tokens, source = parameters.tokens, parameters.source
    drawn = {one.id: one.values for one in series}
    causal = tokens * (tokens + 1) // 2
    leak = Check("largest weight on a later token", 0.0, _leak(tokens, parameters.seed), about="scores")
    # The first and only token has no later one.
    checks = [leak] if tokens > 1 else []
    for name, pairs in (("encoder", tokens**2), ("decoder", causal), ("cross", tokens * source)):
        opened, reached = (drawn[f"{about}-{name}"] for about in ("mask", "reached"))
        seen = int((opened == 1).sum())
        checks += [
            Check(f"{name}: open pairs of query and key", pairs, seen, about=f"mask-{name}"),
            Check(f"{name}: pairs where a change arrived", pairs, _arrived(reached), about=f"reached-{name}"),
        ]
    name = "target: pairs where a change arrived"
    return [*checks, Check(name, causal, _arrived(target), about="reached-cross")]


def _arrived(change: Tensor) -> int:
    return int((change > ARRIVED).sum())


def _mask(name: str, title: str, rule: MaskRule, queries: int, keys: int) -> Heatmap:
    """1 where the key is open; where it is closed no number, and so a gap in the picture."""
    seen = allowed(rule, range(queries), range(keys))  # [T, S]
    return Heatmap(
        name, f"Open keys of {title}", Axis("key"), Axis("query"),
        _places(keys), _places(queries), torch.where(seen, 1.0, float("nan")), "",
    )  # fmt: skip


def _scores(tokens: int, seed: int) -> Heatmap:
    """Scores of random queries and keys under the causal mask: −∞ above the diagonal, drawn as a gap."""
    scores = _attention(tokens, seed, "masked")  # [T, S]
    title = "Random scores, −∞ (empty) where closed"
    places = _places(tokens)
    return Heatmap(
        "scores", title, Axis("key"), Axis("query"), places, places, scores, "score", diverging=True
    )


def _leak(tokens: int, seed: int) -> float:
    """The largest weight that a query gives to a later key."""
    weights = _attention(tokens, seed, "weights")  # [T, S]
    return weights.triu(1).max().item()


def _attention(tokens: int, seed: int, stage: Stage) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, 1, tokens, HEAD_WIDTH, generator=generator)  # [1, T, K]
    rule = ScoreRule((HEAD_WIDTH**-0.5,), (Causal(),))
    found = attention(q, k, rule, heads=range(1), rows=range(tokens), stage=stage)  # [1, T, S]
    return found[0]


def _reached(titles: list[str], found: list[Arrived]) -> list[Heatmap]:
    return [
        _change("reached-encoder", titles[0], found[0].own, "changed token"),
        _change("reached-decoder", titles[1], found[1].own, "changed token"),
        _change("reached-cross", titles[2], _of_source(found[2]), "changed position of the source"),
    ]


def _change(name: str, title: str, change: Tensor, of: str) -> Heatmap:
    title = f"Change of each output, form of {title}"
    columns, rows = _places(change.shape[1]), _places(change.shape[0])
    arrived_only = change.where(change > ARRIVED, float("nan"))  # [T, S]
    return Heatmap(name, title, Axis(of), Axis("output"), columns, rows, arrived_only, "largest change")


def _of_source(found: Arrived) -> Tensor:
    assert found.of_source is not None
    return found.of_source


def _places(count: int) -> list[str]:
    return [str(place) for place in range(count)]


def _drawn(title: str, config: TransformerConfig) -> dict[str, object]:
    """What a drawing of the architecture needs."""
    encoder, front = config.encoder, config.encoder.front if config.encoder else None
    return {
        "title": title,
        "stacks": [_column(stack) for stack in config.stacks],
        "reads": "sound" if isinstance(front, AudioConfig) else "text",
        "vocabulary": config.embedding.vocabulary,
        "readout": config.readout,
        "beside": encoder is not None,
    }


def _column(stack: StackConfig) -> dict[str, object]:
    return {
        **describe(stack),
        "sees_ahead": sees_ahead(stack.mask),
        "cross": stack.cross is not None,
        "final_norm": stack.final_norm,
    }


def _notes(title: str, stack: StackConfig, tokens: int) -> list[str]:
    match stack.mask:
        case Window(left, _) if left + 1 >= tokens:
            reach, here = counted(left + 1, "token"), counted(tokens, "token")
            return [f"{title} sees a window of {reach}: at {here} that is the causal mask."]
        case _:
            return []
