"""Where an answer enters: the logit lens by layer, and what each sublayer adds to the answer's logit.

Logit lens: final norm and unembedding applied to the stream after every layer (nostalgebraist 2020). What one
sublayer adds by itself is told by `attribution`, what is lost without it by running the model without it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import LayerNorm
from model.errors import InputError
from model.heads import TokenHead
from model.labs.attribution import attribution, check_sums, constant, over_mean
from model.labs.bench import Bench
from model.labs.parameters.feed_forward import Facts
from model.labs.reading import read, run_ids
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.vectors import seen
from model.loading import LoadedModel
from model.recorder import Recordable
from model.text import Encoded
from model.trace import Trace

TOP = 5
# Logits by two ways of adding up in fp32.
CLOSE = 1e-3
# The model runs once for each of its layers.
MOST_TOKENS = 64


@dataclass(frozen=True)
class Question:
    """A prompt that ran, and the id of the answer that is followed."""

    loaded: LoadedModel
    encoded: Encoded
    trace: Trace
    answer: int

    @property
    def layers(self) -> int:
        """How many layers the model has."""
        return self.loaded.config.stack.layers

    def kept(self, what: str, layer: int) -> Tensor:
        """What the run recorded at the last token, [D]."""
        return self.trace.kept[what][self.loaded.config.stack.name, layer][-1]

    @property
    def logits(self) -> Tensor:
        """The model's own logits for the next token, [V]."""
        assert self.trace.logits is not None
        return self.trace.logits[-1].float()


def run(parameters: Facts, bench: Bench) -> Result:
    """The answer's rank by layer, what was added to its logit, and what is lost without each layer."""
    question, notes = _ask(parameters, bench)
    lens = torch.stack([_lens(question, layer) for layer in range(question.layers + 1)])  # [L + 1, V]
    parts = _parts(question)
    facts = _facts(parameters, question, lens, parts)
    by_layer, direct = _by_layer(question, lens), _direct(parts)
    checks = [_last_row(question, lens), *_lens_again(question, by_layer), _sum(question, parts)]
    checks.append(_sums(question, parts, direct))
    series = [*by_layer, direct]
    bench.report(
        0.1, "leaving out one feed-forward layer after the other", Result(series, checks, facts, notes)
    )
    lost = _lost(question, bench)
    best = max(range(len(lost)), key=lost.__getitem__)
    facts |= {"cause": {"layer": best, "lost": lost[best]}}
    causal = _causal(lost)
    return Result([*series, causal], [*checks, _without_last(question, causal)], facts, notes)


def _ask(parameters: Facts, bench: Bench) -> tuple[Question, list[str]]:
    """Raises InputError for a model whose logits are no sum over its stream, and what `read` raises."""
    loaded = bench.model(parameters.model)
    encoded = read(loaded, parameters.model, parameters.prompt, MOST_TOKENS)
    check_sums(loaded, parameters.model)
    answer, notes = _answer(loaded, encoded, parameters)
    record: tuple[Recordable, ...] = ("resid", "attn_out", "ffn_out")
    trace = run_ids(loaded, encoded, [], record, [len(encoded.ids) - 1])
    return Question(loaded, encoded, trace, answer), notes


def _answer(loaded: LoadedModel, encoded: Encoded, parameters: Facts) -> tuple[int, list[str]]:
    """The first token of the answer where it follows the prompt."""
    assert loaded.encoder is not None
    glue = "" if parameters.prompt[-1].isspace() or parameters.answer[0].isspace() else " "
    both = loaded.encoder.encode(parameters.prompt + glue + parameters.answer).ids
    prompt = encoded.ids
    if both[: len(prompt)] != prompt or len(both) <= len(prompt):
        raise InputError(
            "The tokenizer joins the prompt's end and the answer into one: end the prompt without a space."
        )
    label = seen(loaded.encoder.label(both[len(prompt)]))
    parts = len(both) - len(prompt)
    notes = [f"The answer is {parts} tokens; the first, “{label}”, is followed."] if parts > 1 else []
    return both[len(prompt)], notes


def _lens(question: Question, layer: int) -> Tensor:
    """Logits [V] that the head would give the stream before a layer; after the last one where layer = L."""
    model = question.loaded.transformer
    with torch.inference_mode():
        final = model.stack.final_norm(question.kept("resid", layer)[None, None])  # [1, 1, D]
        return model.logits(final)[0, 0].float()


def _parts(question: Question) -> dict[str, list[float]]:
    """What the embedding and each sublayer add to the answer's logit, over the mean logit; fp64."""
    at = question.trace.tokens - 1
    added = attribution(question.loaded, question.trace, at, question.answer)

    def share(what: str, layer: int) -> float:
        return added(question.kept(what, layer)).item()

    layers = range(question.layers)
    return {
        "embedding": [share("resid", 0)],
        "attention": [share("attn_out", layer) for layer in layers],
        "feed-forward": [share("ffn_out", layer) for layer in layers],
        "biases": [constant(question.loaded, question.answer)],
    }


def _last_row(question: Question, lens: Tensor) -> Check:
    difference = (lens[-1] - question.logits).abs().max().item()
    return Check(
        "last row of the lens = the model's own logits, largest difference", 0, difference, CLOSE, "<=",
        about="rank",
    )  # fmt: skip


def _lens_again(question: Question, charts: list[Chart]) -> list[Check]:
    """What is drawn of the lens at every layer, against norm and unembedding by their formulas."""
    logits = _unembedded(question, _streams(question))  # [L + 1, V]
    own = logits[:, question.answer, None]
    best = 1 + (logits > own + CLOSE).sum(dim=-1)  # [L + 1]
    worst = (logits >= own - CLOSE).sum(dim=-1)  # those as good as equal may stand before it or after
    rank, probability = (torch.tensor(list(chart.lines[0].y), dtype=torch.float64) for chart in charts)
    strayed = int(((rank < best) | (rank > worst)).sum())
    apart = (logits.double().softmax(dim=-1)[:, question.answer] - probability).abs().max().item()
    return [
        Check("layers whose rank is another by norm and unembedding's formulas", 0, strayed, about="rank"),
        Check("probability by the same formulas, largest difference", 0, apart, CLOSE, "<=",
              about="probability"),
    ]  # fmt: skip


def _streams(question: Question) -> Tensor:
    """The last token's stream before each layer and after the last, [L + 1, D], fp64."""
    return torch.stack([question.kept("resid", layer) for layer in range(question.layers + 1)]).double()


def _unembedded(question: Question, x: Tensor, scaled_by: Tensor | None = None) -> Tensor:
    """Logits [N, V] of x [N, D] by formula; each by its own scale, or all by that of `scaled_by` [D]."""
    stack, head = question.loaded.transformer.stack, question.loaded.transformer.head
    assert isinstance(head, TokenHead)
    if stack.config.final_norm:
        norm, whole = stack.final_norm, x if scaled_by is None else scaled_by.double()
        assert isinstance(norm.eps, float)
        assert isinstance(norm.gain, Tensor)
        if isinstance(stack.config.norm, LayerNorm):
            x, whole = (y - y.mean(dim=-1, keepdim=True) for y in (x, whole))
        x = x / (whole.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt() * norm.gain.double()
        bias = getattr(norm, "bias", None)
        x = x + bias.double() if isinstance(bias, Tensor) else x
    logits = torch.nn.functional.linear(
        x.to(head.projection.weight.dtype), head.projection.weight, head.projection.bias
    )
    return logits.float() * (head.scale or 1.0)


def _sum(question: Question, parts: dict[str, list[float]]) -> Check:
    own = over_mean(question.logits, question.answer)
    total = sum(sum(values) for values in parts.values())
    return Check(
        "all contributions together = the answer's logit over the mean", own, total, 1e-2, about="direct"
    )


def _sums(question: Question, parts: dict[str, list[float]], direct: Chart) -> Check:
    """What is drawn, added up layer by layer, against the logit of the stream that is there by then."""
    streams = _streams(question)
    logits = _unembedded(question, streams, streams[-1])  # [L + 1, V]
    own = logits[:, question.answer].double() - logits.double().mean(dim=-1)  # [L + 1]
    added = torch.tensor([list(line.y) for line in direct.lines], dtype=torch.float64).sum(dim=0)  # [L]
    start = sum(parts["embedding"]) + sum(parts["biases"])
    total = start + torch.cat([added.new_zeros(1), added.cumsum(dim=0)])  # [L + 1]
    name = "contributions up to each layer = the stream's own logit there, largest difference"
    return Check(name, 0, (total - own).abs().max().item(), 1e-2, "<=", about="direct")


def _without_last(question: Question, causal: Chart) -> Check:
    """The last layer's bar: a run without it loses what its output, taken out of the stream, takes along."""
    streams, last = _streams(question), question.layers - 1
    without = streams[-1] - question.kept("ffn_out", last).double()
    logits = _unembedded(question, torch.stack([streams[-1], without]))  # [2, V]
    own, left = (over_mean(row, question.answer) for row in logits)
    bar = causal.lines[0].y[last]
    assert isinstance(bar, float)
    name = f"without feed-forward {last}: loss in a run of its own = loss when its output is taken out"
    return Check(name, own - left, bar, 1e-2, about="causal")


def _by_layer(question: Question, lens: Tensor) -> list[Chart]:
    probabilities = torch.softmax(lens.double(), dim=-1)[:, question.answer]  # [L + 1]
    places, axis = list(range(len(lens))), Axis("layer; the last point is the model's own output")
    rank, name = _ranks(question, lens), seen(_label(question, question.answer))
    ranks = [float(one) for one in rank]
    ended = f"of “{name}” if the model ended here"
    place = Axis("rank; 1 is the prediction", log=True)
    return [
        Chart("rank", f"Rank {ended}", axis, place, [Line("rank", places, ranks)]),
        Chart(
            "probability",
            f"Probability {ended}",
            axis,
            Axis("probability"),
            [Line("p", places, probabilities.tolist())],
        ),
    ]


def _ranks(question: Question, lens: Tensor) -> list[int]:
    """1 for the token with the largest logit."""
    return (1 + (lens > lens[:, question.answer, None]).sum(dim=-1)).tolist()


def _direct(parts: dict[str, list[float]]) -> Chart:
    lines = [Line(name, list(range(len(parts[name]))), parts[name]) for name in ("attention", "feed-forward")]
    axes = Axis("layer"), Axis("added to the answer's logit, over the mean")
    return Chart("direct", "What each sublayer adds to the answer's logit", *axes, lines, "bars")


def _lost(question: Question, bench: Bench) -> list[float]:
    """By how much the answer's logit falls, over the mean, when one layer's FFN is left out."""
    own, lost = over_mean(question.logits, question.answer), []
    name = question.loaded.config.stack.name
    for layer in range(question.layers):
        plan: list[dict[str, object]] = [
            {"kind": "drop_sublayer", "sublayer": "ffn", "sites": f"{name}.self.{layer}"}
        ]
        trace = run_ids(question.loaded, question.encoded, plan, (), [len(question.encoded.ids) - 1])
        assert trace.logits is not None
        lost.append(own - over_mean(trace.logits[-1].float(), question.answer))
        bench.report(0.1 + 0.9 * (layer + 1) / question.layers, f"without feed-forward {layer}", None)
    return lost


def _causal(lost: list[float]) -> Chart:
    line = Line("feed-forward", list(range(len(lost))), lost)
    axes = Axis("layer"), Axis("fall of the answer's logit, over the mean")
    return Chart("causal", "What is lost when one layer's feed-forward is left out", *axes, [line], "bars")


def _label(question: Question, id_: int) -> str:
    assert question.loaded.encoder is not None
    return question.loaded.encoder.label(id_)


def _facts(
    parameters: Facts, question: Question, lens: Tensor, parts: dict[str, list[float]]
) -> dict[str, object]:
    ranks, ffn = _ranks(question, lens), parts["feed-forward"]
    best = max(range(len(ffn)), key=ffn.__getitem__)
    probabilities = torch.softmax(lens.double(), dim=-1)
    arrives = next((layer for layer in range(len(ranks)) if max(ranks[layer:]) == 1), None)
    top = probabilities[-1].topk(TOP)
    return {
        "model": parameters.model,
        "prompt": parameters.prompt,
        "answer": seen(_label(question, question.answer)),
        "layers": question.layers,
        "rank": ranks[-1],
        "p": probabilities[-1, question.answer].item(),
        "stays_first_from": "no layer on" if arrives is None else arrives,
        "ffn": {"layer": best, "added": ffn[best]},
        "logit": over_mean(question.logits, question.answer),
        "biased": abs(sum(parts["biases"])) > 0,
        "totals": {name: sum(values) for name, values in parts.items()},
        "top": [
            {"token": seen(_label(question, id_)), "probability": p}
            for p, id_ in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        ],
        "best_by_layer": [
            {"layer": layer, "best token": seen(_label(question, int(row.argmax()))), "rank": rank}
            for layer, (row, rank) in enumerate(zip(lens, ranks, strict=True))
        ],
    }  # fmt: skip
