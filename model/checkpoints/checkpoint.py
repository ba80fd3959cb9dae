"""A checkpoint that was understood: its configuration, and its tensors ready to be named as ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from model.checkpoints.mapping import Ignore, Take, fill
from model.checkpoints.source import Source
from model.config import TransformerConfig


@dataclass(frozen=True)
class Checkpoint:
    """What a family's reader makes of a source, no weight read yet. `notices` are for the user to see."""

    family: str
    config: TransformerConfig
    source: Source
    table: Sequence[Take]
    ignored: Sequence[Ignore]
    notices: tuple[str, ...] = ()

    def state_dict(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """The weights under our names, for parameters of these shapes. Raises CheckpointError, see `fill`."""
        return fill(self.source, self.table, self.ignored, self.config.stack.layers, shapes)
