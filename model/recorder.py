"""Keeps what a forward passes by: causes of attention always, the rest only where asked for."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from model.rules import ScoreRule
from model.trace import SiteTrace

Recordable = Literal["resid"]


@dataclass
class Recorder:
    """Receives tensors from one run of one sequence; nothing outlives the run but what was kept here."""

    record: frozenset[Recordable] = frozenset()
    sites: dict[str, SiteTrace] = field(default_factory=dict)
    resid: dict[tuple[str, int], Tensor] = field(default_factory=dict)

    def keep_attention(self, site: str, q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> None:
        """Takes q [1, H, T, K] and k [1, G, S, K] after rotation, v [1, G, S, K], and the rule that ran."""
        self.sites[site] = SiteTrace(site, q[0], k[0], v[0], rule)

    def keep_resid(self, stack: str, layer: int, x: Tensor) -> None:
        """The stream x [1, T, D] that enters block `layer`, or leaves the last one."""
        if "resid" in self.record:
            self.resid[stack, layer] = x[0]
