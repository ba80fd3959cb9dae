"""What a model loses where its heads must share a pattern: several distributions against one.

Every head keeps its own values; only where it looks is shared: the mean of the patterns of its group.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.errors import InputError, TooLong
from model.labs.attribution import predicts
from model.labs.bench import Bench
from model.labs.parameters.heads import OnePattern
from model.labs.reading import run_ids
from model.labs.result import Axis, Chart, Check, Line, Result
from model.labs.word_links import read_short
from model.labs.words import counted
from model.loading import LoadedModel
from model.text import Encoded
from model.trace import SiteTrace, Trace

MAX_TOKENS = 64
# Weights that a plan holds: one for each pair of tokens of each pattern of each layer.
MAX_WEIGHTS = 2_000_000
# fp32 through some dozen layers: a change of the last bit comes out as some ten-thousandths of a nat.
SAME = 2e-3

Facts = dict[str, object]
Step = dict[str, object]


@dataclass(frozen=True)
class Kept:
    """A text's own run, and the runs in which each layer has `counts` patterns, by the count."""

    loaded: LoadedModel
    encoded: Encoded
    own: Trace
    runs: dict[int, Trace]
    shared: Sequence[Tensor]

    @property
    def heads(self) -> int:
        """Heads a layer."""
        return self.loaded.config.stack.attention.heads

    def worth(self, trace: Trace) -> float:
        """Surprise by the text in nats a token; without predictions the cosine with the own text vector."""
        if trace.logits is not None:
            answers = torch.tensor(self.encoded.ids[1:])
            return F.cross_entropy(trace.logits[:-1].float().cpu(), answers).item()
        now, own = (run.final.float().cpu().mean(dim=0) for run in (trace, self.own))  # [D]
        return F.cosine_similarity(now, own, dim=0).item()


def run(parameters: OnePattern, bench: Bench) -> Result:
    """Runs a text with fewer and fewer patterns. Raises what `read_short` raises, InputError, TooLong."""
    loaded = bench.model(parameters.model)
    encoded = read_short(loaded, parameters.model, parameters.text, MAX_TOKENS)
    _refuse(loaded, encoded, parameters.model)
    with torch.inference_mode():
        kept = _runs(loaded, encoded, bench)
        return Result([_chart(kept)], _checks(kept), _facts(kept, parameters))


def _refuse(loaded: LoadedModel, encoded: Encoded, model_id: str) -> None:
    stack, tokens = loaded.config.stack, len(encoded.ids)
    if predicts(loaded) and tokens < 2:
        raise InputError("A text of one token has none to predict: give at least two.")
    if stack.layers * stack.attention.heads * tokens**2 > MAX_WEIGHTS:
        most = int((MAX_WEIGHTS / (stack.layers * stack.attention.heads)) ** 0.5)
        raise TooLong(
            f"The text has {tokens} tokens and this lab takes {most} from {model_id}: shorten it.", limit=most
        )


def _runs(loaded: LoadedModel, encoded: Encoded, bench: Bench) -> Kept:
    positions = range(len(encoded.ids)) if predicts(loaded) else ()
    own = run_ids(loaded, encoded, logit_positions=positions)
    heads = loaded.config.stack.attention.heads
    counts = sorted({1, max(1, heads // 2), heads})
    runs: dict[int, Trace] = {}
    for done, count in enumerate(counts, start=1):
        bench.report(done / (len(counts) + 1), f"{counted(count, 'pattern')} a layer", None)
        plan = [step for site in own.sites.values() for step in given(site, count)]
        runs[count] = run_ids(loaded, encoded, plan, logit_positions=positions)
    shared = [torch.tensor(given(site, 1)[0]["weights"]) for site in own.sites.values()]
    return Kept(loaded, encoded, own, runs, shared)


def given(site: SiteTrace, count: int) -> list[Step]:
    """Steps of a plan that give a layer's heads, in `count` groups, the mean pattern of each group."""
    patterns = site.attention(site.all_heads, range(site.queries)).float().cpu()  # [H, T, T]
    return [
        {
            "kind": "set_attention",
            "sites": site.site,
            "heads": group.tolist(),
            "weights": patterns[group].mean(dim=0).clamp(0, 1).tolist(),
        }
        for group in torch.arange(site.heads).tensor_split(count)
    ]


def _chart(kept: Kept) -> Chart:
    counts = list(kept.runs)
    names = [_named(count, kept.heads) for count in counts]
    predicting = kept.own.logits is not None
    title = "Surprise by the text" if predicting else "Cosine of the text's vector with its own"
    label = "nats a token" if predicting else "cosine"
    line = Line(label, names, [kept.worth(kept.runs[count]) for count in counts])
    return Chart("patterns", title, Axis("patterns a layer"), Axis(label), [line], "bars")


def _named(count: int, heads: int) -> str:
    if count == heads:
        return f"{count}, one for each head"
    return f"{count}, one for all" if count == 1 else f"{count}, shared by groups"


def _facts(kept: Kept, parameters: OnePattern) -> Facts:
    own, one = kept.worth(kept.own), kept.worth(kept.runs[1])
    loses = {"own": own, "one": one, "more": one - own, "change": _change(one - own)}
    predicting = kept.own.logits is not None
    mixed, single = _spread(kept)
    return {
        "model": parameters.model,
        "text": parameters.text,
        "heads": kept.heads,
        "layers": len(kept.own.sites),
        "several": kept.heads > 1,
        "surprise": loses if predicting else None,
        "cosine": None if predicting else {"one": one},
        "spread": {"one": mixed, "own": single},
        "stack": next(iter(kept.own.sites)).rpartition(".")[0],
    }


def _change(more: float) -> str:
    if abs(more) <= SAME:
        return "the same"
    return "more" if more > 0 else "less"


def _spread(kept: Kept) -> tuple[float, float]:
    """Mean entropy in nats of the rows of the shared patterns, and of the heads' own."""
    shared = torch.stack([_entropy(pattern) for pattern in kept.shared]).mean().item()
    own = [_entropy(site.attention(site.all_heads, range(site.queries))) for site in kept.own.sites.values()]
    return shared, torch.stack(own).mean().item()


def _entropy(patterns: Tensor) -> Tensor:
    entropies: Tensor = torch.special.entr(patterns.double().cpu()).sum(dim=-1)  # [..., T]
    return entropies.mean()


def _checks(kept: Kept) -> list[Check]:
    """Own patterns given by hand change nothing; the mean of several is as spread out as they, or more."""
    given_back = kept.worth(kept.runs[kept.heads])
    own = _surprise(kept) if kept.own.logits is not None else 1.0
    mixed, single = _spread(kept)
    # Entropy is concave: of a mean it is at least the mean of the entropies (Jensen).
    spread = "mean entropy of a row of the shared pattern, against the heads' own"
    return [
        Check("each head given its own pattern: as the model does", own, given_back, SAME, about="patterns"),
        Check(spread, single, mixed, 1e-5, ">=", about="patterns"),
    ]


def _surprise(kept: Kept) -> float:
    """Mean surprise of the own run, token by token, from probabilities in fp64."""
    assert kept.own.logits is not None
    total = 0.0
    for row, answer in zip(kept.own.logits, kept.encoded.ids[1:], strict=False):
        logits = row.double().cpu()
        odds = (logits - logits[answer]).exp().sum()  # 1 / p of the answer
        total += odds.log().item()
    return total / (len(kept.encoded.ids) - 1)
