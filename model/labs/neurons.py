"""One token in one feed-forward layer: which neurons speak, and what each adds to the prediction.

The layer is a sum over neurons, out = Σ_i a_i · w_i (+ bias), with a_i the activation and w_i a column of the
last projection: each neuron writes its own vector into the stream (Geva et al. 2021, 2022).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from model.config import LayerNorm
from model.errors import InputError
from model.heads import TokenHead
from model.labs.attribution import attribution, predicts
from model.labs.bench import Bench
from model.labs.parameters.feed_forward import Neurons
from model.labs.reading import Ran, limits_of, read, run_ids
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result, Series
from model.labs.vectors import apart, numbered, rounding, seen, stack_name
from model.labs.words import ACTIVATION_NAMES, span
from model.loading import LoadedModel
from model.recorder import Recordable
from model.stack import Block

POINTS, WORDS, SHARE, SILENT, SAMPLED = 400, 4, 0.9, 0.01, 16
TOWARDS, AWAY = "pushes towards", "and away from"


@dataclass(frozen=True)
class Layer:
    """One layer's hidden activations [T, F], and what one token's neurons write: their lengths [F]."""

    block: Block
    hidden: Tensor
    at: int
    writes: Tensor

    @property
    def own(self) -> Tensor:
        """The activations of the chosen token, [F]."""
        return self.hidden[self.at]

    @property
    def columns(self) -> Tensor:
        """What each neuron writes at activation 1, [D, F]."""
        return self.block.ffn.down.weight.double()


def run(parameters: Neurons, bench: Bench) -> Result:
    """The neurons of a token by what they write, the loudest of them, and how few make most of it."""
    ran = _ran(parameters, bench)
    layer = _layer(ran, parameters)
    order = layer.writes.argsort(descending=True)
    share = _to_prediction(ran, layer)
    if parameters.by == "the prediction" and share is None:
        raise InputError(f"{parameters.model} predicts no next token: order the neurons by what they write.")
    loudest = order if parameters.by == "what they write" or share is None else share.argsort(descending=True)
    loudest = loudest[: parameters.top]
    series: list[Series] = [_ranked(layer, order), _by_token(ran, layer, loudest)]
    rows = [_row(ran, layer, int(neuron), share) for neuron in loudest]
    checks = [
        _whole(ran, layer, parameters.layer),
        *_lengths(layer, order, series, rows),
        *_pushes(ran, layer, share, rows),
    ]
    facts = {**_facts(ran, layer, parameters), "loudest": rows, "predicted": _predicted(ran)}
    return Result(series, checks, facts, _notes(ran.loaded), limits_of(ran.loaded, "layer"))


def _ran(parameters: Neurons, bench: Bench) -> Ran:
    loaded = bench.model(parameters.model)
    encoded = read(loaded, parameters.model, parameters.text)
    tokens = len(encoded.ids)
    if not -tokens <= parameters.token < tokens:
        raise InputError(
            f"There is no token {parameters.token}: this text has tokens {span(tokens)}; choose one."
        )
    positions = [parameters.token % tokens] if predicts(loaded) else []
    record: tuple[Recordable, ...] = ("resid", "ffn_act", "ffn_out")
    return Ran(loaded, encoded, run_ids(loaded, encoded, [], record, positions))


def _predicted(ran: Ran) -> str | None:
    return None if ran.trace.logits is None else _words(ran.loaded, ran.trace.logits.argmax(dim=-1))


def _to_prediction(ran: Ran, layer: Layer) -> Tensor | None:
    """What each neuron adds to the logit of the token's own prediction, over the mean logit, [F]."""
    if ran.trace.logits is None:
        return None
    added = attribution(ran.loaded, ran.trace, layer.at, int(ran.trace.logits.argmax()))
    return torch.stack([added(write) for write in (layer.columns * layer.own).T])  # [F]


def _layer(ran: Ran, parameters: Neurons) -> Layer:
    """Raises InputError for a layer that there is not."""
    stack = ran.loaded.transformer.stack
    if parameters.layer >= stack.config.layers:
        raise InputError(
            f"There is no layer {parameters.layer}: this model has layers {span(stack.config.layers)}; "
            "choose one of them."
        )
    block = stack.blocks[parameters.layer]
    assert isinstance(block, Block)
    hidden = ran.trace.kept["ffn_act"][stack_name(ran.loaded), parameters.layer].double()  # [T, F]
    at = parameters.token % ran.trace.tokens
    lengths = block.ffn.down.weight.double().norm(dim=0)  # [F]
    return Layer(block, hidden, at, hidden[at].abs() * lengths)


def _ranked(layer: Layer, order: Tensor) -> Chart:
    sorted_writes = layer.writes[order]
    places = torch.logspace(0, math.log10(len(order)), POINTS).round().long() - 1
    places = torch.tensor(sorted(set(places.tolist())))
    lines = [Line("this token", (places + 1).tolist(), sorted_writes[places])]
    axes = Axis("neurons, loudest first", log=True), Axis("length of what it writes", log=True)
    return Chart("ranked", "How much each neuron writes", *axes, lines)


def _by_token(ran: Ran, layer: Layer, loudest: Tensor) -> Heatmap:
    """The loudest neurons at every token of the text, [neurons, T]."""
    values = layer.hidden[:, loudest].T  # [neurons, T]
    names = [str(int(neuron)) for neuron in loudest]
    return Heatmap(
        "tokens", "The same neurons at the other tokens", Axis("token"), Axis("neuron"),
        numbered(ran.labels), names, values, "activation", diverging=True,
    )  # fmt: skip


def _whole(ran: Ran, layer: Layer, number: int) -> Check:
    """All neurons together against what the run recorded."""
    recorded = ran.trace.kept["ffn_out"][stack_name(ran.loaded), number][layer.at]  # [D]
    down = layer.block.ffn.down
    summed = (layer.columns * layer.own).sum(dim=-1)  # [D]
    bias = getattr(down, "bias", None)
    summed = summed if bias is None else summed + bias.double()
    if layer.block.placement == "both":
        summed = layer.block.get_submodule("ffn_out_norm")(summed.to(recorded.dtype))
    name = "sum over neurons = what the layer adds: largest relative difference"
    return Check(name, 0.0, apart(summed, recorded), rounding(recorded), "<=")


def _written(layer: Layer, neurons: Tensor) -> Tensor:
    """What these neurons write, each run alone through the last projection itself, [neurons, D]."""
    down = layer.block.ffn.down
    alone = torch.zeros(len(neurons) + 1, len(layer.own), dtype=down.weight.dtype, device=layer.own.device)
    alone[torch.arange(len(neurons)), neurons] = layer.own[neurons].to(alone.dtype)
    with torch.inference_mode():
        out = down(alone).double()  # [neurons + 1, D]; the last has the bias alone
    found: Tensor = out[:-1] - out[-1]
    return found


def _lengths(layer: Layer, order: Tensor, series: list[Series], rows: list[dict[str, object]]) -> list[Check]:
    """Lengths in the picture and in the table, against neurons that are run alone."""
    line = series[0].lines[0] if isinstance(series[0], Chart) else None
    assert line is not None
    picked = range(0, len(line.x), max(1, len(line.x) // SAMPLED))
    places = torch.tensor([int(line.x[i]) - 1 for i in picked])
    drawn = torch.tensor([float(line.y[i]) for i in picked], dtype=torch.float64)  # type: ignore[arg-type]
    alone = _written(layer, order[places]).norm(dim=-1)
    told = torch.tensor([row["writes"] for row in rows], dtype=torch.float64)
    told_alone = _written(layer, torch.tensor([int(str(row["neuron"])) for row in rows])).norm(dim=-1)
    slack = rounding(layer.block.ffn.down.weight)
    name = "length of what a neuron writes = that of the neuron run alone: largest difference, of the loudest"
    return [
        Check(f"{name}, in the picture", 0.0, apart(drawn, alone), slack, "<=", about="ranked"),
        Check(f"{name}, in the table", 0.0, apart(told, told_alone), slack, "<="),
    ]


def _pushes(ran: Ran, layer: Layer, share: Tensor | None, rows: list[dict[str, object]]) -> list[Check]:
    """Words and shares in the table, against the model's own head on what each neuron writes alone."""
    if share is None or ran.trace.logits is None:
        return []
    answer = int(ran.trace.logits.argmax())
    every = torch.cat(
        [
            _written(layer, torch.tensor([int(str(row["neuron"])) for row in rows])),
            (layer.columns @ layer.own)[None],
        ]
    )
    logits = _logits_of(ran, layer, every)  # [rows + 1, V]
    strange = sum(_strange(ran.loaded, logits[i], row) for i, row in enumerate(rows))
    over = logits[:, answer] - logits.mean(dim=-1)  # [rows + 1]
    told = torch.tensor([row[f"adds to “{_predicted(ran)}”"] for row in rows], dtype=torch.float64)
    slack = 10 * rounding(layer.block.ffn.down.weight)
    return [
        Check("words in the table that the model's own head does not raise or lower most", 0, strange),
        Check("shares of the prediction in the table = by the model's own head, largest difference", 0.0,
              (told - over[:-1]).abs().max().item(), slack * share.abs().sum().item(), "<="),
        Check("all neurons together add to the prediction, by the model's own head", over[-1].item(),
              share.sum().item(), slack * share.abs().sum().item()),
    ]  # fmt: skip


def _logits_of(ran: Ran, layer: Layer, x: Tensor) -> Tensor:
    """What x [N, D], written into the last stream, adds to all logits [N, V]: the model's head, one scale."""
    stack, model = ran.loaded.transformer.stack, ran.loaded.transformer
    last = ran.trace.resid[stack.config.name, stack.config.layers][layer.at].double()
    centred = isinstance(stack.config.norm, LayerNorm) and stack.config.final_norm
    gain, eps = getattr(stack.final_norm, "gain", None), getattr(stack.final_norm, "eps", None)
    if centred:
        x, last = x - x.mean(dim=-1, keepdim=True), last - last.mean()
    if isinstance(gain, Tensor) and isinstance(eps, float):
        x = x * gain.double() / (last.square().mean() + eps).sqrt()
    x = torch.cat([x, torch.zeros_like(x[:1])]).to(layer.block.ffn.down.weight.dtype)
    with torch.inference_mode():
        logits = model.logits(x[None])[0].double()  # [N + 1, V]
    return logits[:-1] - logits[-1]


def _strange(loaded: LoadedModel, logits: Tensor, row: dict[str, object]) -> int:
    """Words of a row that are not among those a neuron raises and lowers most, but for rounding."""
    found, close = 0, 1e-4 * logits.abs().max()
    for name, pushed in ((TOWARDS, logits), (AWAY, -logits)):
        last = pushed.topk(WORDS).values[-1]
        allowed = set(_words(loaded, (pushed >= last - close).nonzero()[:, 0]).split(" "))
        told = str(row[name]).split(" ")
        found += sum(word not in allowed for word in told) + abs(len(told) - WORDS)
    return found


def _row(ran: Ran, layer: Layer, neuron: int, share: Tensor | None) -> dict[str, object]:
    """A neuron: how active, how long its write, which next tokens it raises and lowers."""
    row: dict[str, object] = {
        "neuron": f"{neuron}",
        "activation": layer.own[neuron].item(),
        "writes": layer.writes[neuron].item(),
    }
    if share is not None:
        row[f"adds to “{_predicted(ran)}”"] = share[neuron].item()
    pushed = _pushed(ran.loaded, layer.own[neuron] * layer.columns[:, neuron])
    if pushed is not None:
        up, down = pushed.topk(WORDS).indices, (-pushed).topk(WORDS).indices
        row |= {TOWARDS: _words(ran.loaded, up), AWAY: _words(ran.loaded, down)}
    return row


def _pushed(loaded: LoadedModel, write: Tensor) -> Tensor | None:
    """What a vector write [D] adds to each logit [V], but for the final norm's one factor for all of them."""
    head = loaded.transformer.head
    if not predicts(loaded):
        return None
    assert isinstance(head, TokenHead)
    stack = loaded.transformer.stack
    gain = getattr(stack.final_norm, "gain", None)
    if isinstance(stack.config.norm, LayerNorm) and stack.config.final_norm:
        write = write - write.mean()
    direction = write if gain is None else write * gain.double()
    return (head.projection.weight.float() @ direction.float()).double()  # [V]


def _words(loaded: LoadedModel, ids: Tensor) -> str:
    labels = [str(id_) if loaded.encoder is None else seen(loaded.encoder.label(id_)) for id_ in ids.tolist()]
    return " ".join(labels)


def _facts(ran: Ran, layer: Layer, parameters: Neurons) -> dict[str, object]:
    squares = layer.writes.sort(descending=True).values
    few = int((squares.cumsum(dim=0) < SHARE * squares.sum()).sum()) + 1
    width, hidden = layer.columns.shape
    quiet = layer.own.abs() < SILENT * layer.own.abs().max()
    return {
        "model": parameters.model,
        "text": parameters.text,
        "stack": f"{stack_name(ran.loaded)}.self",
        "layer": parameters.layer,
        "layers": ran.loaded.config.stack.layers,
        "token": seen(ran.labels[layer.at]),
        "at": layer.at,
        "tokens": [seen(label) for label in ran.labels],
        "width": width,
        "hidden": hidden,
        "expansion": hidden / width,
        "activation": ACTIVATION_NAMES[ran.loaded.config.stack.feed_forward.activation],
        "gated": ran.loaded.config.stack.feed_forward.gated,
        "quiet": quiet.double().mean().item(),
        "negative": (layer.own < 0).double().mean().item(),
        "share": SHARE,
        "few": few,
        "few_share": few / hidden,
    }


def _notes(loaded: LoadedModel) -> list[str]:
    if predicts(loaded):
        return ["Pushes are what a neuron adds to each logit by itself; later layers may answer to it too."]
    return ["This model predicts no next token: there is nothing to push towards."]
