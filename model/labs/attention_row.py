"""One query of a real head: softmax(q·Kᵀ · scale + bias + mask) V, step by step (Vaswani et al. 2017, eq. 1).

What is shown is computed from its parts, and held against what the model's own forward made.
"""

import torch
from torch import Tensor

from model.config import Rope
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.one_head import Where, by_hand, numbered, spoken, tolerance
from model.labs.parameters.attention_row import AttentionRow
from model.labs.projections import projected
from model.labs.reading import Ran, limits_of, run_text
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result
from model.labs.words import counted, listed, one_of
from model.rules import Causal, mask_in_words, scale_in_words
from model.scores import STAGES
from model.stack import Block

MOST_TOKENS = 128
HEAD_OUT = "head_out/attention"
Row = dict[str, Tensor]


def run(parameters: AttentionRow, bench: Bench) -> Result:
    """The row of `query`. Raises InputError for a layer, head or token there is not, or a long text."""
    where = Where(parameters.layer, parameters.head)
    where.check(bench.model(parameters.model), parameters.model)
    swap: dict[str, object] = {"kind": "set_mask", "rule": {"name": parameters.mask}}
    plan = [] if parameters.mask == "own" else [swap]
    ran = run_text(bench, parameters.model, parameters.text, plan, ("resid", "head_out"), MOST_TOKENS)
    _check_tokens(ran, parameters)
    row = _row(ran, where, parameters.query)
    pattern = _pattern(ran, where)
    return Result(
        [*_charts(ran, parameters, row), pattern],
        [*_checks(ran, parameters, row), _check_of(pattern, ran, where)],
        _facts(ran, parameters, row),
        _notes(parameters, row),
        {**limits_of(ran.loaded, "layer", "head"), "query": len(ran.labels) - 1, "key": len(ran.labels) - 1},
    )


def _check_tokens(ran: Ran, parameters: AttentionRow) -> None:
    count = len(ran.labels)
    for name, index in (("query", parameters.query), ("key", parameters.key)):
        if index >= count:
            raise InputError(
                f"The text has {counted(count, 'token')} and no {name} {index}: {one_of(count)}."
            )


def _row(ran: Ran, where: Where, query: int) -> Row:
    """Everything about one query, on the CPU in fp64: stages [S], q and output [K], k and v [S, K]."""
    site = where.of(ran)
    rows = range(query, query + 1)
    found = {stage: site.attention(where.heads, rows, stage)[0, 0] for stage in STAGES}  # [S] each
    group = site.key_head(where.head)
    place = ran.loaded.config.stack.name, where.layer
    output = ran.trace.kept[HEAD_OUT][place][where.head, query]  # [K]
    vectors = {"q": site.q[where.head, query], "k": site.k[group], "v": site.v[group], "output": output}
    return {name: tensor.detach().cpu().double() for name, tensor in (found | vectors).items()}


def _charts(ran: Ran, parameters: AttentionRow, row: Row) -> list[Chart | Heatmap]:
    tokens = numbered(ran.labels)
    query, key = tokens[parameters.query], tokens[parameters.key]
    k = row["k"][parameters.key]  # [K]
    dims = [float(dim) for dim in range(len(k))]
    dimension = Axis("dimension of the head")
    mixed = row["weights"][:, None] * row["v"]  # [S, K]
    scores = [Line("raw q·k", tokens, row["raw"]), Line("scaled", tokens, row["scaled"])]
    if _has_bias(row):
        scores.append(Line("with position bias", tokens, row["biased"]))
    scores.append(Line("masked", tokens, _finite(row["masked"])))
    v = row["v"][parameters.key]  # [K]
    # In this order they get the colours of query, key and value.
    vectors = [Line("q", dims, row["q"]), Line("k", dims, k), Line("v", dims, v)]
    vectors.append(Line("q × k", dims, row["q"] * k))
    outputs = [Line("Σ weight × v", dims, mixed.sum(dim=0)), Line("the model's own run", dims, row["output"])]
    return [
        Chart(
            "vectors", f"Query of “{query}”, key and value of “{key}”",
            dimension, Axis("number"), vectors, "bars",
        ),
        Chart("scores", f"Scores of “{query}” with every key", Axis("key"), Axis("score"), scores, "bars"),
        Chart(
            "weights", f"Weights of “{query}”: a distribution", Axis("key"), Axis("weight"),
            [Line("weight", tokens, row["weights"])], "bars",
        ),
        Heatmap(
            "values", f"What each key hands over to “{query}”: weight × v",
            dimension, Axis("key"), dims, tokens, mixed, "value", diverging=True,
        ),
        Chart("output", f"Output of the head for “{query}”", dimension, Axis("value"), outputs),
    ]  # fmt: skip


def _has_bias(row: Row) -> bool:
    return not torch.equal(row["biased"], row["scaled"])


def _pattern(ran: Ran, where: Where) -> Heatmap:
    site, tokens = where.of(ran), numbered(ran.labels)
    weights = site.attention(where.heads, range(site.queries))[0]  # [T, S]
    title = f"L{where.layer}H{where.head}, every row a query; mask: {_mask(ran, where)}"
    return Heatmap("pattern", title, Axis("key"), Axis("query"), tokens, tokens, weights, "weight")


def _mask(ran: Ran, where: Where) -> str:
    return mask_in_words(where.of(ran).rule.masks[where.head])


def _finite(values: Tensor) -> list[float | None]:
    return [value if value > -torch.inf else None for value in values.tolist()]


def _checks(ran: Ran, parameters: AttentionRow, row: Row) -> list[Check]:
    products = row["q"] * row["k"][parameters.key]  # [K]
    raw, weights = row["raw"][parameters.key].item(), row["weights"]  # [S]
    apart = (weights @ row["v"] - row["output"]).abs().max().item()
    # A tolerance of 1e-5 is meant for numbers around one.
    largest = max(1.0, row["output"].abs().max().item())
    closed = weights[row["masked"] == -torch.inf]
    where, within = Where(parameters.layer, parameters.head), tolerance(ran.loaded)
    rounding = within * max(1.0, products.abs().sum().item())
    scale = where.of(ran).rule.scales[parameters.head]
    return [
        *(
            Check(f"{vector} = {words}, largest difference", 0.0, far, 10 * within * size, about="vectors")
            for vector, words, far, size in projected(ran, where, parameters.query, parameters.key)
        ),
        Check("sum of the products q × k", raw, products.sum().item(), rounding, about="vectors"),
        Check("q·k × scale", raw * scale, row["scaled"][parameters.key].item(), rounding, about="scores"),
        Check("sum of the weights", 1.0, weights.sum().item(), 1e-6, about="weights"),
        Check("largest weight of a forbidden key", 0.0, max([0.0, *closed.tolist()]), about="weights"),
        Check("Σ weight × v = output, largest difference", 0.0, apart, within * largest, about="output"),
    ]  # fmt: skip


def _check_of(pattern: Heatmap, ran: Ran, where: Where) -> Check:
    scores, weights = by_hand(ran, where)  # [T, S] each
    apart = (pattern.values.cpu().double() - weights).abs().max().item()
    # A score has rounding as large as itself, and a weight moves by as much at most.
    within = tolerance(ran.loaded) * max(1.0, scores[scores > -torch.inf].abs().max().item())
    return Check("weights against softmax by hand, largest gap", 0.0, apart, within, about="pattern")


def _facts(ran: Ran, parameters: AttentionRow, row: Row) -> dict[str, object]:
    where, key = Where(parameters.layer, parameters.head), parameters.key
    scale, weights = where.of(ran).rule.scales[parameters.head], row["weights"]
    attention = ran.loaded.config.stack.attention
    strongest = int(weights.argmax())
    return {
        "tokens": ran.labels,
        "query": spoken(ran.labels[parameters.query]),
        "key": spoken(ran.labels[key]),
        "query_index": parameters.query,
        "key_index": key,
        "model": parameters.model,
        "text": parameters.text,
        "head_name": f"L{where.layer}H{where.head}",
        "layer": where.layer,
        "head": where.head,
        "layers": ran.loaded.config.stack.layers,
        "heads": attention.heads,
        "width": ran.loaded.config.stack.width,
        "d_k": len(row["q"]),
        "mask": _mask(ran, where),
        "raw": row["raw"][key].item(),
        "scale": scale,
        "scale_words": scale_in_words(scale, len(row["q"])),
        "scaled": row["scaled"][key].item(),
        "bias": (row["biased"] - row["scaled"])[key].item(),
        "weight": weights[key].item(),
        "row_sum": weights.sum().item(),
        "strongest": spoken(ran.labels[strongest]),
        "strongest_weight": weights[strongest].item(),
        "causal": isinstance(where.of(ran).rule.masks[parameters.head], Causal),
        "added": _adds_bias(ran, where),
        "rotated": isinstance(ran.loaded.config.stack.position, Rope),
        "marks": _marks(ran),
        "forbidden": int((row["masked"] == -torch.inf).sum()),
        "key_state": "forbidden" if row["masked"][key] == -torch.inf else "open",
        "output_difference": (weights @ row["v"] - row["output"]).abs().max().item(),
        "weights": weights.tolist(),
        "stages": [_stage(label, place, row) for place, label in enumerate(numbered(ran.labels))],
    }


def _marks(ran: Ran) -> str:
    """The tokens that the model's tokenizer set around the text, each named once: "[CLS] and [SEP]"."""
    special = [token.text for token in ran.encoded.tokens if token.special]
    return listed(list(dict.fromkeys(special)))


def _adds_bias(ran: Ran, where: Where) -> bool:
    block = ran.loaded.transformer.stack.blocks[where.layer]
    assert isinstance(block, Block)
    return "bias" in dict(block.attention.q.named_parameters())


def _stage(label: str, place: int, row: Row) -> dict[str, object]:
    """One key's way through the stages."""
    masked = row["masked"][place].item()
    return {
        "key": label,
        "q·k": row["raw"][place].item(),
        "× scale": row["scaled"][place].item(),
        **({"+ bias": row["biased"][place].item()} if _has_bias(row) else {}),
        "+ mask": masked if masked > -torch.inf else "−∞",
        "softmax": row["weights"][place].item(),
        "|weight × v|": (row["weights"][place] * row["v"][place]).norm().item(),
    }


def _notes(parameters: AttentionRow, row: Row) -> list[str]:
    if row["masked"][parameters.key] > -torch.inf:
        return []
    return ["The mask forbids this key: its score becomes −∞ and its weight exactly 0."]
