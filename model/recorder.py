"""Keeps what a forward passes by: causes of attention always, the rest only where asked for."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from model.rules import ScoreRule
from model.trace import SiteTrace

# resid: the stream between blocks. mid: between sublayers. attn_out, cross_out, ffn_out: what each adds.
# head_out: each head's mixed values, before W_O. ffn_pre, ffn_act: before and after the non-linearity.
# norms: mean and root mean square of every norm's input.
Recordable = Literal[
    "resid", "mid", "attn_out", "cross_out", "ffn_out", "head_out", "ffn_pre", "ffn_act", "norms"
]
Where = tuple[str, int]


@dataclass
class Recorder:
    """Receives tensors from one run of one sequence; nothing outlives the run but what was kept here."""

    record: frozenset[Recordable] = frozenset()
    sites: dict[str, SiteTrace] = field(default_factory=dict)
    kept: dict[str, dict[Where, Tensor]] = field(default_factory=dict)
    memory: Tensor | None = None

    def keep_attention(self, site: str, q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> None:
        """Receives q [1, H, T, K], k [1, G, S, K] after rotation, v [1, G, S, K], and the rule that ran."""
        self.sites[site] = SiteTrace(site, q[0], k[0], v[0], rule)

    def keep_memory(self, memory: Tensor) -> None:
        """Receives what the encoder made of its input, memory [1, S, D]."""
        self.memory = memory[0]

    def keep(self, what: Recordable, where: Where, x: Tensor, name: str = "") -> None:
        """Receives x [1, ...] of a (stack, layer); kept under `what` or `what/name` if asked for."""
        if what in self.record:
            self.kept.setdefault(f"{what}/{name}" if name else what, {})[where] = x[0]

    def in_order(self, sites: Iterable[str]) -> dict[str, SiteTrace]:
        """The sites that ran, in the model's order; an intervention may have left some out."""
        return {site: self.sites[site] for site in sites if site in self.sites}


@dataclass(frozen=True)
class Tap:
    """A recorder at one block, handed down to its parts."""

    recorder: Recorder
    where: Where

    def wants(self, what: Recordable) -> bool:
        """Whether `what` was asked for; making it may cost something."""
        return what in self.recorder.record

    def keep(self, what: Recordable, x: Tensor, name: str = "") -> None:
        """Receives x [1, ...] of this block."""
        self.recorder.keep(what, self.where, x, name)
