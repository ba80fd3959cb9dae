"""A block is x + Attention(x), then x + FFN(x); a stack is a column of blocks.

In a decoder that reads an encoder, cross-attention stands between the two.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from model.attention import Attention, SiteRun
from model.bias import Alibi, RelativeBias, alibi_slopes
from model.cache import Cache
from model.config import AlibiPosition, RelativeBuckets, Rope, StackConfig
from model.ffn import FeedForward
from model.interventions import Sublayer
from model.norms import build_norm
from model.places import placed
from model.plan import Program
from model.position import Rotation, rotation
from model.recorder import Recordable, Recorder, Tap
from model.rules import Causal, ScoreRule


@dataclass(frozen=True)
class StackRun:
    """What one stack is told for one run.

    `positions` [B, S] are those of all tokens, `real` [B, S] is False at padding keys, `memory` [B, S', D] is
    what an encoder made of its input, with its own `memory_real`; `first` is the index of the first token,
    above 0 where a cache holds earlier ones.
    """

    program: Program
    positions: Tensor
    real: Tensor | None = None
    memory: Tensor | None = None
    memory_real: Tensor | None = None
    recorder: Recorder | None = None
    cache: Cache | None = None
    first: int = 0
    fused: bool = True


@dataclass(frozen=True)
class BlockRun:
    """What one block is told for one run; `left_out` names what an intervention leaves out."""

    own: SiteRun
    cross: SiteRun | None
    memory: Tensor | None
    left_out: frozenset[str]
    tap: Tap | None

    def keep(self, what: Recordable, x: Tensor, name: str = "") -> None:
        """Hands x [B, ...] to the recorder, if there is one."""
        if self.tap is not None:
            self.tap.keep(what, x, name)


Part = Callable[[Tensor], Tensor]


class Block(nn.Module):
    """One layer. Norms stand before (Xiong et al. 2020), after the sum (Vaswani et al. 2017), or both sides.

    Parallel blocks are x + attention(norm x) + ffn(norm' x) (Wang and Komatsuzaki 2021).
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.placement, self.parallel = config.norm_placement, config.parallel
        self.attention = Attention(config.width, config.attention)
        self.ffn = FeedForward(config.width, config.feed_forward)
        self.cross = Attention(config.width, config.cross) if config.cross else None
        names = ["attention", "ffn", *(["cross"] if config.cross else [])]
        for name in names:
            self.add_module(f"{name}_norm", build_norm(config.norm, config.width))
            if self.placement == "both":
                self.add_module(f"{name}_out_norm", build_norm(config.norm, config.width))

    def forward(self, x: Tensor, run: BlockRun) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]."""
        if self.parallel:
            return self._parallel(x, run)
        x = self._sublayer("attention", x, lambda y: self.attention(y, run.own), run)  # [B, T, D]
        if self.cross is not None and run.cross is not None:
            attend, cross = self.cross, run.cross
            run.keep("mid", x, "attention")
            x = self._sublayer("cross", x, lambda y: attend(y, cross, run.memory), run)  # [B, T, D]
        run.keep("mid", x)
        return self._sublayer("ffn", x, lambda y: self.ffn(y, run.tap), run)  # [B, T, D]

    def _sublayer(self, name: Sublayer, x: Tensor, part: Part, run: BlockRun) -> Tensor:
        """One part of the block with its norms and its residual."""
        if f"{name} sublayer" in run.left_out:
            return x
        residual = 0.0 if f"{name} residual" in run.left_out else x
        match self.placement:
            case "pre":
                return residual + self._added(name, part(self._normed(name, x, run)), run)
            case "post":
                return self._normed(name, residual + self._added(name, part(x), run), run)
            case "both":
                after = self._normed(name, part(self._normed(name, x, run)), run, "out_norm")
                return residual + self._added(name, after, run)

    def _parallel(self, x: Tensor, run: BlockRun) -> Tensor:
        out = 0.0 * x if run.left_out & {"attention residual", "ffn residual"} else x
        if "attention sublayer" not in run.left_out:
            out = out + self._added(
                "attention", self.attention(self._normed("attention", x, run), run.own), run
            )
        if "ffn sublayer" not in run.left_out:
            out = out + self._added("ffn", self.ffn(self._normed("ffn", x, run), run.tap), run)
        return out  # [B, T, D]

    def _added(self, name: Sublayer, y: Tensor, run: BlockRun) -> Tensor:
        """What a sublayer adds to the stream, on its way there."""
        run.keep(_OUT[name], y)
        return y

    def _normed(self, name: Sublayer, x: Tensor, run: BlockRun, place: str = "norm") -> Tensor:
        """The norm of a sublayer applied, or not where the run leaves it out."""
        if run.tap is not None and run.tap.wants("norms"):
            statistics = torch.stack((x.mean(dim=-1), x.square().mean(dim=-1).sqrt()), dim=-1)  # [B, T, 2]
            run.keep("norms", statistics, f"{name}_{place}")
        if f"{name} norm" in run.left_out:
            return x
        out: Tensor = self.get_submodule(f"{name}_{place}")(x)  # [B, T, D]
        return out


_OUT: dict[Sublayer, Recordable] = {"attention": "attn_out", "cross": "cross_out", "ffn": "ffn_out"}


class Stack(nn.Module):
    """L blocks, and a final norm where pre-norm blocks need one."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.config = config
        # A block that all layers share stands in the list once for each of them.
        count = 1 if config.shared else config.layers
        blocks = [Block(config) for _ in range(count)]
        self.blocks = nn.ModuleList(blocks * config.layers if config.shared else blocks)
        self.final_norm = build_norm(config.norm, config.width) if config.final_norm else nn.Identity()
        self.bias = _build_bias(config)

    def forward(self, x: Tensor, run: StackRun) -> Tensor:
        """Maps x [B, T, D] to [B, T, D]."""
        own, changed = self._rotations(run, x)
        for layer, block in enumerate(self.blocks):
            turn = changed if layer >= self._from_layer(run) else own
            step = self._step(layer, run, turn)
            step.keep("resid", x)
            x = block(x, step)  # [B, T, D]
        if run.recorder is not None:
            run.recorder.keep("resid", (self.config.name, self.config.layers), x)
        out: Tensor = self.final_norm(x)  # [B, T, D]
        return out

    def _step(self, layer: int, run: StackRun, rotation: Rotation | None) -> BlockRun:
        where = self.config.name, layer
        tap = None if run.recorder is None else Tap(run.recorder, where)
        own, cross = self._own(layer, run, rotation, tap), self._cross(layer, run, tap)
        return BlockRun(own, cross, run.memory, run.program.left_out.get(where, frozenset()), tap)

    def _own(self, layer: int, run: StackRun, rotation: Rotation | None, tap: Tap | None) -> SiteRun:
        site = self.config.self_sites[layer]
        rule = run.program.rules[site]
        if self.bias is not None:
            rule = replace(rule, bias=self.bias)
            change = run.program.positions.get(self.config.name)
            if change is not None and layer >= change.from_layer:
                places = placed(change, run.positions)
                rule = replace(rule, bias=None) if places is None else replace(rule, places=places[0])
        return self._site_run(site, rule, run, tap, rotation=rotation, real=run.real)

    def _cross(self, layer: int, run: StackRun, tap: Tap | None) -> SiteRun | None:
        if self.config.cross is None:
            return None
        site = self.config.cross_sites[layer]
        return self._site_run(site, run.program.rules[site], run, tap, real=run.memory_real, cross=True)

    def _site_run(
        self,
        site: str,
        rule: ScoreRule,
        run: StackRun,
        tap: Tap | None,
        *,
        rotation: Rotation | None = None,
        real: Tensor | None = None,
        cross: bool = False,
    ) -> SiteRun:
        return SiteRun(
            site,
            rule,
            rotation,
            real,
            run.program.outputs.get(site, {}),
            run.recorder,
            run.cache,
            run.first,
            cross,
            run.fused,
            tap,
        )

    def _from_layer(self, run: StackRun) -> int:
        change = run.program.positions.get(self.config.name)
        return 0 if change is None else change.from_layer

    def _rotations(self, run: StackRun, x: Tensor) -> tuple[Rotation | None, Rotation | None]:
        """The rotation at the tokens' own positions, and at those a plan puts them."""
        rope, change = self.config.position, run.program.positions.get(self.config.name)
        if not isinstance(rope, Rope):
            return None, None
        own = rotation(rope, run.positions[:, run.first :], x.dtype)
        if change is None:
            return own, own
        places = placed(change, run.positions)
        based = rope if change.base is None else replace(rope, base=change.base)
        return own, None if places is None else rotation(based, places[:, run.first :], x.dtype)


def _build_bias(config: StackConfig) -> Alibi | RelativeBias | None:
    match config.position:
        case AlibiPosition():
            return Alibi(alibi_slopes(config.attention.heads))
        case RelativeBuckets(buckets, max_distance):
            both_ways = not isinstance(config.mask, Causal)
            return RelativeBias(config.attention.heads, buckets, max_distance, both_ways=both_ways)
        case _:
            return None
