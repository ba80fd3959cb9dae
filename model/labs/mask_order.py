"""A causal mask alone tells order: later queries share their weight among more keys (Haviv et al. 2022)."""

from torch import Tensor

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.order import MaskOrder
from model.labs.reading import limits_of, read, run_ids
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.words import span
from model.loading import LoadedModel
from model.text import Encoded

OFF: dict[str, object] = {"kind": "set_position", "mode": "off"}


def run(parameters: MaskOrder, bench: Bench) -> Result:
    """How much each repetition attends to the first token, with either mask and no positions.

    Raises InputError where texts do not begin with a token of the model's own, or for a head there is not.
    """
    loaded = bench.model(parameters.model)
    text = read(loaded, parameters.model, " ".join([parameters.word] * parameters.repeats))
    _refuse(loaded, text, parameters)
    places = [place for place, token in enumerate(text.tokens) if not token.special]
    share = {
        name: _first_share(loaded, text, name, parameters.head)[places]
        for name in ("causal", "bidirectional")
    }
    outputs = {name: _spread(loaded, text, name, places) for name in share}
    expected = _expected(share["causal"])
    checks, facts = _checks(share, expected, outputs), _facts(text, share, outputs)
    return Result([_chart(share, expected)], checks, facts, limits=limits_of(loaded, "head"))


def _refuse(loaded: LoadedModel, text: Encoded, parameters: MaskOrder) -> None:
    heads = loaded.config.stack.attention.heads
    if parameters.head >= heads:
        raise InputError(
            f"There is no head {parameters.head}: layers of {parameters.model} have heads {span(heads)}."
        )
    words = [token.id for token in text.tokens if not token.special]
    if not text.tokens[0].special:
        raise InputError(
            f"{parameters.model} puts no token of its own before a text, so its first token is the word "
            "itself: choose minilm, whose texts begin with [CLS]."
        )
    if len(words) != parameters.repeats or len(set(words)) != 1:
        raise InputError(
            f"{parameters.model} makes more than one token of “{parameters.word}”: choose one common word."
        )


def _plan(mask: str) -> list[dict[str, object]]:
    return [OFF, {"kind": "set_mask", "rule": {"name": mask}}]


def _first_share(loaded: LoadedModel, text: Encoded, mask: str, head: int) -> Tensor:
    """The weight of every query on token 0 in a head of the first layer, [T]."""
    trace = run_ids(loaded, text, _plan(mask))
    site = trace.sites[loaded.config.stack.self_sites[0]]
    return site.attention(range(head, head + 1), range(site.queries))[0, :, 0].double().cpu()  # [T]


def _spread(loaded: LoadedModel, text: Encoded, mask: str, places: list[int]) -> float:
    """The largest difference between the outputs of the first repetition and of any other."""
    final = run_ids(loaded, text, _plan(mask)).final[places].float()  # [repeats, D]
    return (final - final[0]).abs().max().item()


def _expected(share: Tensor) -> list[float]:
    """Equal keys get equal scores: from the first weight w, repetition t attends 1 / (1 + t (1/w - 1))."""
    ratio = 1 / share[0].item() - 1
    return [1 / (1 + t * ratio) for t in range(1, len(share) + 1)]


def _chart(share: dict[str, Tensor], expected: list[float]) -> Chart:
    repeats = list(range(1, len(expected) + 1))
    lines = [
        Line("causal mask", repeats, share["causal"]),
        Line("bidirectional", repeats, share["bidirectional"]),
        Line("causal, from the first repetition alone", repeats, expected, "theory"),
    ]
    title = "Weight on the first token, no positions, all words the same"
    return Chart("share", title, Axis("repetition"), Axis("weight on the first token", zero=True), lines)


def _checks(share: dict[str, Tensor], expected: list[float], outputs: dict[str, float]) -> list[Check]:
    off = max(abs(a - b) for a, b in zip(share["causal"].tolist(), expected, strict=True))
    same = share["bidirectional"]
    return [
        Check("causal: weights and 1 / (1 + t · ratio), largest difference", 0.0, off, 1e-5),
        Check("bidirectional: range of the weights", 0.0, (same.max() - same.min()).item(), 1e-6),
        Check(
            "bidirectional: outputs of the repetitions, largest difference",
            0.0,
            outputs["bidirectional"],
            1e-5,
        ),
    ]


def _facts(text: Encoded, share: dict[str, Tensor], outputs: dict[str, float]) -> dict[str, object]:
    return {
        "first_token": text.tokens[0].text, "repeats": len(share["causal"]),
        "first_share": share["causal"][0], "last_share": share["causal"][-1],
        "even_share": share["bidirectional"][0],
        "causal_difference": outputs["causal"], "bidirectional_difference": outputs["bidirectional"],
    }  # fmt: skip
