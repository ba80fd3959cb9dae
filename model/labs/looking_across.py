"""What a decoder's cross-attention did: all its weights, their centres, and what the target owes to them.

How far a head follows its source is Spearman's rank correlation (Spearman 1904) of the target's order with
the centres of its rows.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from model.inputs import Inputs
from model.labs.beside import Source, seconds
from model.labs.one_head import numbered
from model.loading import LoadedModel
from model.plan import OWN, Plan
from model.text import Encoded
from model.trace import Trace

_WITHOUT = ({"kind": "drop_sublayer", "sublayer": "cross", "sites": "decoder.self.*"},)


@dataclass(frozen=True)
class Seen:
    """One run beside its source: `weights` [L, H, T, S] of all cross-attention, each token's surprise [T].

    Surprise is −log p in nats, `alone` where cross-attention is left out. The tokens before `first` are the
    decoder's start, which nobody predicts.
    """

    loaded: LoadedModel
    source: Source
    target: Encoded
    weights: Tensor
    surprise: Tensor
    alone: Tensor

    @property
    def first(self) -> int:
        """Place of the first token behind the decoder's start."""
        return len(self.loaded.config.start)

    @property
    def labels(self) -> list[str]:
        """Tokens of the target, each with its place."""
        return numbered([token.text for token in self.target.tokens])

    @property
    def mean_surprise(self) -> tuple[float, float]:
        """With cross-attention and without, in nats a token."""
        with_it, without = self.surprise[self.first :].mean(), self.alone[self.first :].mean()
        return with_it.item(), without.item()

    @property
    def centres(self) -> Tensor:
        """The centre of every row's weight, in seconds or places, over what holds the sound: [L, H, T]."""
        shown = self.source.sounding or self.weights.shape[-1]
        weights = self.weights[..., :shown].double()  # [L, H, T, S']
        places = torch.arange(shown, dtype=torch.float64)
        centres = (weights * places).sum(-1) / weights.sum(-1).clamp(min=1e-12)  # [L, H, T]
        return centres * seconds(1) if self.source.sounding else centres


def look(loaded: LoadedModel, given: Source, target: Encoded) -> Seen:
    """Runs a target beside its source, and once more with the cross-attention left out."""
    own = _run(loaded, given.inputs(loaded, target), target, OWN)
    # What nobody reads need not be encoded whole, and the encoder is most of the work.
    without = Plan.parse(list(_WITHOUT)).canonical(loaded.config)
    alone = _run(loaded, given.inputs(loaded, target, 1), target, without)
    return Seen(loaded, given, target, _weights(own), _surprise(own, target), _surprise(alone, target))


def plain_surprise(loaded: LoadedModel, given: Source, target: Encoded) -> Tensor:
    """The surprise [T - 1] of a run that records nothing, by torch's own cross-entropy."""
    with torch.inference_mode():
        logits = loaded.transformer.logits(loaded.transformer(given.inputs(loaded, target)))[0]  # [T, V]
    ids = torch.tensor(target.ids[1:], device=logits.device)
    return F.cross_entropy(logits[:-1].float(), ids, reduction="none").cpu()  # [T-1]


def _run(loaded: LoadedModel, inputs: Inputs, tokens: Encoded, plan: Plan) -> Trace:
    return loaded.transformer.trace(inputs, plan, logit_positions=range(len(tokens.ids)))


def _weights(trace: Trace) -> Tensor:
    sites = [site for name, site in trace.sites.items() if name.startswith("decoder.cross.")]
    return torch.stack(
        [site.attention(site.all_heads, range(site.queries)).cpu() for site in sites]
    )  # [L, H, T, S]


def _surprise(trace: Trace, tokens: Encoded) -> Tensor:
    """Nats by which each token [T] surprises who read those before it; the first has none before it: NaN."""
    assert trace.logits is not None
    log_p = trace.logits.float().log_softmax(-1)[:-1]  # [T-1, V]
    ids = torch.tensor(tokens.ids[1:], device=log_p.device)
    found = -log_p.gather(1, ids[:, None])[:, 0].cpu()  # [T-1]
    return torch.cat((found.new_tensor([float("nan")]), found))  # [T]


def follow(centres: Tensor) -> Tensor:
    """Spearman's correlation of each row [..., T] with 0, 1, 2, …: [...]; 0 where all are alike."""
    # The rank of what is alike is the mean of the ranks it takes.
    below = (centres[..., None, :] < centres[..., :, None]).sum(-1)  # [..., T]
    alike = (centres[..., None, :] == centres[..., :, None]).sum(-1)  # [..., T]
    ranks = below.double() + (alike - 1) / 2  # [..., T]
    order = torch.arange(centres.shape[-1], dtype=torch.float64).expand_as(ranks)
    stacked = torch.stack((ranks, order), dim=-2)  # [..., 2, T]
    deviations = stacked - stacked.mean(-1, keepdim=True)  # [..., 2, T]
    norms = deviations.norm(dim=-1).prod(-1)  # [...]
    return torch.where(norms > 0, deviations.prod(-2).sum(-1) / norms, 0.0)
