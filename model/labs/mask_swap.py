"""The same weights under another mask: head, outputs, predictions, and what a token cannot know.

A causal mask adds -∞ to the score of every later key before the softmax (Vaswani et al. 2017, section 3.2.3).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.errors import InputError
from model.labs.attention_row import MOST_TOKENS
from model.labs.bench import Bench
from model.labs.one_head import Where, by_hand, numbered, relative, spoken, tolerance
from model.labs.parameters.attention_row import MaskSwap
from model.labs.reading import Ran, limits_of, read, run_ids
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result
from model.labs.vectors import seen
from model.loading import LoadedModel
from model.masks import sees_ahead
from model.rules import mask_in_words
from model.text import Encoded

TOP = 5
WHOSE = {"own": "the model's own", "chosen": "the chosen"}


@dataclass(frozen=True)
class Runs:
    """Two texts, the second with another ending, each under the model's own mask and the chosen one."""

    own: Ran
    chosen: Ran
    other_own: Ran
    other_chosen: Ran

    @property
    def shared(self) -> int:
        """The tokens that both texts begin with."""
        pairs = zip(self.own.encoded.ids, self.other_own.encoded.ids, strict=False)
        shorter = min(len(self.own.encoded.ids), len(self.other_own.encoded.ids))
        return next((place for place, (a, b) in enumerate(pairs) if a != b), shorter)


def run(parameters: MaskSwap, bench: Bench) -> Result:
    """Own mask against the chosen one. Raises InputError for a head there is not, or an unfit text."""
    loaded = bench.model(parameters.model)
    where = Where(parameters.layer, parameters.head)
    where.check(loaded, parameters.model)
    texts = [parameters.text, _with_ending(parameters)]
    plans = [[], _plan(parameters)]
    encoded = [read(loaded, parameters.model, text, MOST_TOKENS) for text in texts]
    runs = Runs(*(_run(loaded, one, plan) for one in encoded for plan in plans))
    if encoded[0].ids == encoded[1].ids:
        raise InputError(_no_difference(parameters, encoded[0]))
    patterns = [_pattern("own", runs.own, where), _pattern("chosen", runs.chosen, where)]
    return Result(
        [*patterns, _changes(runs), _ahead(runs)],
        _checks(runs, where, patterns),
        _facts(runs, where, parameters, texts[1]),
        _notes(runs),
        limits_of(loaded, "layer", "head"),
    )


def _last_word(parameters: MaskSwap) -> str:
    return parameters.text.split()[-1]


def _with_ending(parameters: MaskSwap) -> str:
    """The text with its last word replaced."""
    words = parameters.text.rstrip().rsplit(maxsplit=1)
    if not words:
        raise InputError("The text is blank, and its last word is to be replaced: write at least two words.")
    if len(words) < 2:
        raise InputError("The text has one word, and its last is to be replaced: write at least two words.")
    return f"{words[0]} {parameters.ending}"


def _no_difference(parameters: MaskSwap, encoded: Encoded) -> str:
    """Why the two endings cannot be told apart."""
    last = _last_word(parameters)
    if last == parameters.ending.strip():
        return f"The text already ends in “{parameters.ending}”: choose another ending."
    words = [token.text for token in encoded.tokens if not token.special]
    return (
        f"{parameters.model} does not tell “{last}” from “{parameters.ending}”: both become the same tokens, "
        f"“{spoken(words[-1])}” at the end. Choose another ending or model."
    )


def _plan(parameters: MaskSwap) -> list[dict[str, object]]:
    more: dict[str, dict[str, object]] = {
        "window": {"left": parameters.reach, "right": 0},
        "prefix": {"length": parameters.reach},
    }
    if parameters.mask == "own":
        return []
    return [{"kind": "set_mask", "rule": {"name": parameters.mask, **more.get(parameters.mask, {})}}]


def _run(loaded: LoadedModel, encoded: Encoded, plan: list[dict[str, object]]) -> Ran:
    last = [len(encoded.ids) - 1] if loaded.config.readout == "logits" else []
    return Ran(loaded, encoded, run_ids(loaded, encoded, plan, logit_positions=last))


def _mask(ran: Ran, where: Where) -> str:
    return mask_in_words(where.of(ran).rule.masks[where.head])


def _weights(ran: Ran, where: Where) -> Tensor:
    site = where.of(ran)
    return site.attention(where.heads, range(site.queries))[0].cpu()  # [T, S]


def _pattern(name: str, ran: Ran, where: Where) -> Heatmap:
    tokens = numbered(ran.labels)
    title = f"L{where.layer}H{where.head} under {WHOSE[name]} mask: {_mask(ran, where)}"
    return Heatmap(name, title, Axis("key"), Axis("query"), tokens, tokens, _weights(ran, where), "weight")


def _moved(runs: Runs) -> Tensor:
    """How far the chosen mask moves each token's output, relative to its size: [T]."""
    own, chosen = runs.own.trace.final, runs.chosen.trace.final  # [T, D] each
    return relative(chosen - own, own)  # [T]


def _changes(runs: Runs) -> Chart:
    lines = [Line("|change| / |output|", numbered(runs.own.labels), _moved(runs))]
    title = "What the chosen mask does to each token's output"
    return Chart("changes", title, Axis("token"), Axis("|change| / |output|"), lines, "bars")


def _heard(a: Ran, b: Ran, shared: int) -> Tensor:
    """How far the outputs of the tokens before the ending differ between two texts: [shared]."""
    first, second = a.trace.final[:shared], b.trace.final[:shared]  # [shared, D] each
    return relative(second - first, first)  # [shared]


def _ahead(runs: Runs) -> Chart:
    tokens = numbered(runs.own.labels[: runs.shared])
    lines = [
        Line("own mask", tokens, _heard(runs.own, runs.other_own, runs.shared)),
        Line("chosen mask", tokens, _heard(runs.chosen, runs.other_chosen, runs.shared)),
    ]
    title = "What earlier tokens notice of another ending"
    return Chart("ahead", title, Axis("token before the ending"), Axis("|change| / |output|"), lines, "bars")


def _checks(runs: Runs, where: Where, patterns: list[Heatmap]) -> list[Check]:
    checks = []
    for pattern, ran in zip(patterns, (runs.own, runs.chosen), strict=True):
        scores, weights = by_hand(ran, where)  # [T, S] each
        drawn = pattern.values.double()  # [T, S]
        apart = (drawn - weights).abs().max().item()
        gap = (drawn.sum(dim=-1) - 1).abs().max().item()
        forbidden = drawn[scores == -torch.inf].max().item() if (scores == -torch.inf).any() else 0.0
        # A score has rounding as large as itself, and a weight moves by as much at most.
        within = tolerance(ran.loaded) * max(1.0, scores[scores > -torch.inf].abs().max().item())
        name = pattern.id
        checks += [
            Check(
                f"{name} mask: weights against softmax by hand, largest gap", 0.0, apart, within, about=name
            ),
            Check(f"{name} mask: rows that do not sum to 1, largest gap", 0.0, gap, 1e-6, about=name),
            Check(f"{name} mask: largest weight of a forbidden pair", 0.0, forbidden, about=name),
        ]
    pairs = (("own", runs.own, runs.other_own), ("chosen", runs.chosen, runs.other_chosen))
    for name, first, second in pairs:
        # Only where no layer shows a later key can nothing leak from the ending.
        if not _sees_ahead(first):
            most = _heard(first, second, runs.shared).max().item() if runs.shared else 0.0
            what = f"what earlier tokens notice under the {name} mask"
            checks.append(Check(what, 0.0, most, tolerance(first.loaded), about="ahead"))
    return checks


def _sees_ahead(ran: Ran) -> bool:
    masks = {mask for site in ran.trace.sites.values() for mask in site.rule.masks}
    return any(sees_ahead(mask) for mask in masks)


def _facts(runs: Runs, where: Where, parameters: MaskSwap, other: str) -> dict[str, object]:
    moved, tokens = _moved(runs), runs.own.labels
    heard_own = _heard(runs.own, runs.other_own, runs.shared)
    heard_chosen = _heard(runs.chosen, runs.other_chosen, runs.shared)
    site = where.of(runs.chosen)
    closed = ~torch.isfinite(site.attention(where.heads, range(site.queries), "masked")[0])
    return {
        "model": parameters.model,
        "text": parameters.text,
        "other_text": other,
        "layer": where.layer,
        "head": where.head,
        "head_name": f"L{where.layer}H{where.head}",
        "layers": runs.own.loaded.config.stack.layers,
        "heads": runs.own.loaded.config.stack.attention.heads,
        "last": _last_word(parameters),
        "other_last": parameters.ending.strip(),
        "own_mask": _mask(runs.own, where),
        "chosen_mask": _mask(runs.chosen, where),
        "plan": _plan(parameters)[0]["rule"] if parameters.mask != "own" else {"name": "own"},
        "pairs": closed.numel(),
        "forbidden": int(closed.sum()),
        "moved_mean": moved.mean().item(),
        "moved_most": moved.max().item(),
        "moved_token": spoken(tokens[int(moved.argmax())]) if moved.max() > 0 else None,
        "changes": None if _same(runs) else _what_changes(runs),
        "before": runs.shared,
        "own_ahead": _sees_ahead(runs.own),
        "chosen_ahead": _sees_ahead(runs.chosen),
        "predicts": runs.own.trace.logits is not None,
        "noticed_own": heard_own.max().item() if runs.shared else 0.0,
        "noticed_chosen": heard_chosen.max().item() if runs.shared else 0.0,
        "readout": _readout(runs),
    }


def _readout(runs: Runs) -> list[dict[str, object]]:
    """The predictions under both masks side by side, or how alike the text's vectors are."""
    if runs.own.trace.logits is None or runs.chosen.trace.logits is None:
        vectors = [F.normalize(ran.trace.final.float().mean(dim=0), dim=0) for ran in (runs.own, runs.chosen)]
        alike = float(vectors[0] @ vectors[1])
        return [{"what": "cosine between the text's two vectors", "value": alike}]
    tops = [_top(ran) for ran in (runs.own, runs.chosen)]
    return [
        {
            "rank": rank + 1,
            "own mask": own[0],
            "p, own mask": own[1],
            "chosen mask": chosen[0],
            "p, chosen mask": chosen[1],
        }
        for rank, (own, chosen) in enumerate(zip(*tops, strict=True))
    ]


def _top(ran: Ran) -> list[tuple[str, float]]:
    assert ran.trace.logits is not None
    assert ran.loaded.encoder is not None
    found = ran.trace.logits[-1].float().softmax(dim=-1).topk(TOP)
    pairs = zip(found.indices.tolist(), found.values.tolist(), strict=True)
    return [(seen(ran.loaded.encoder.label(token)), share) for token, share in pairs]


def _notes(runs: Runs) -> list[str]:
    if _same(runs):
        return ["The chosen mask lets tokens see what the model's own does: choose another one to compare."]
    return ["The model was trained with its own mask, and never taught to work under this one."]


def _what_changes(runs: Runs) -> str:
    """What tokens may do under the chosen mask and not under the own one, or the reverse."""
    match _sees_ahead(runs.own), _sees_ahead(runs.chosen):
        case False, True:
            return "Here tokens may suddenly look ahead, which this model never learnt to do."
        case True, False:
            return "Here tokens may no longer look ahead, as this model learnt to do."
        case _:
            return "Here tokens look at other tokens than this model learnt to."


def _same(runs: Runs) -> bool:
    pairs = zip(runs.own.trace.sites.values(), runs.chosen.trace.sites.values(), strict=True)
    return all(own.rule.masks == chosen.rule.masks for own, chosen in pairs)
