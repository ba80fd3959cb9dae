"""The mapping engine: a family's table of names, applied so strictly that nothing is lost or made up."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from model.checkpoints.source import Source
from model.errors import CheckpointError

Change = Callable[[Tensor], Tensor]
Found = tuple[str, Tensor]


@dataclass(frozen=True)
class Take:
    """One row: the source tensor's name, the parameters it fills, and how it is rearranged on the way.

    `{layer}` in the names stands for every layer's number, of `layers` where a stack has its own count.
    """

    source: str
    targets: tuple[str, ...]
    change: Change | None = None
    layers: int | None = None

    def over(self, layers: int) -> "Take":
        """The row for a stack of its own number of layers."""
        return replace(self, layers=layers)

    def at(self, layer: int) -> "Take":
        """The row of one layer."""
        number = str(layer)
        targets = tuple(target.replace("{layer}", number) for target in self.targets)
        return Take(self.source.replace("{layer}", number), targets, self.change)


@dataclass(frozen=True)
class Ignore:
    """Source tensors (a regular expression over whole names) left out, and why that changes nothing shown.

    A tied tensor is left out only where it really equals the one it is a `copy_of`.
    """

    pattern: str
    reason: str
    copy_of: str | None = None


def take(source: str, *targets: str, change: Change | None = None) -> Take:
    """A row of a mapping table."""
    return Take(source, targets, change)


def linear(source: str, target: str, *, bias: bool = True, change: Change | None = None) -> list[Take]:
    """The rows of a linear layer: its weight, and its bias where it has one."""
    parts = ("weight", "bias") if bias else ("weight",)
    return [take(f"{source}.{part}", f"{target}.{part}", change=change) for part in parts]


def layer_norm(source: str, target: str, names: tuple[str, str] = ("weight", "bias")) -> list[Take]:
    """The rows of a layer norm, whose gain and bias the source calls by `names`."""
    return [
        take(f"{source}.{name}", f"{target}.{ours}")
        for name, ours in zip(names, ("gain", "bias"), strict=True)
    ]


def fill(
    source: Source,
    table: Iterable[Take],
    ignored: Sequence[Ignore],
    layers: int,
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, Tensor]:
    """The state dict that `table` makes of `source`, for parameters of the given `shapes`.

    Raises CheckpointError, naming file and tensor, unless every source tensor is taken once or ignored with a
    reason, every parameter is filled once, and all shapes agree.
    """
    rows = [row for template in table for row in _rows(template, layers)]
    _check_names(source, {row.source for row in rows})
    for name in sorted(source.names - {row.source for row in rows}):
        _ignore(source, name, ignored)
    state: dict[str, Tensor] = {}
    for row in rows:
        tensor = _changed(row, source)
        for target in row.targets:
            _place(state, target, (row.source, tensor), source.origin, shapes)
    missing = sorted(shapes.keys() - state.keys())
    if missing:
        raise CheckpointError(
            f"{source.origin} fills no {missing[0]} ({len(missing)} parameters in all).", tensor=missing[0]
        )
    return state


def _changed(row: Take, source: Source) -> Tensor:
    tensor = source.tensor(row.source)
    if row.change is None:
        return tensor
    try:
        return row.change(tensor)
    except RuntimeError as error:
        raise CheckpointError(
            f"{source.origin} gives {row.source} the shape {list(tensor.shape)}, "
            "which its configuration does not allow.",
            tensor=row.source,
        ) from error


def _rows(template: Take, layers: int) -> list[Take]:
    layers = layers if template.layers is None else template.layers
    return [template.at(layer) for layer in range(layers)] if "{layer}" in template.source else [template]


def _check_names(source: Source, wanted: set[str]) -> None:
    absent = sorted(wanted - source.names)
    if absent:
        raise CheckpointError(
            f"{source.origin} lacks the tensor {absent[0]} ({len(absent)} missing in all).", tensor=absent[0]
        )


def _ignore(source: Source, name: str, ignored: Sequence[Ignore]) -> None:
    rule = next((rule for rule in ignored if re.fullmatch(rule.pattern, name)), None)
    if rule is None:
        raise CheckpointError(
            f"{source.origin} holds the tensor {name}, which this family's reader does not know.", tensor=name
        )
    if rule.copy_of is not None and not torch.equal(source.tensor(name), source.tensor(rule.copy_of)):
        raise CheckpointError(
            f"{source.origin} ties {name} to {rule.copy_of}, but the two differ: its configuration is wrong.",
            tensor=name,
        )


def _place(
    state: dict[str, Tensor], target: str, found: Found, origin: str, shapes: Mapping[str, tuple[int, ...]]
) -> None:
    name, tensor = found
    if target in state:
        raise CheckpointError(
            f"{origin} would fill {target} twice, the second time from {name}.", tensor=name
        )
    if target not in shapes:
        raise CheckpointError(
            f"{origin} holds {name}, but the model its configuration describes has no {target}.", tensor=name
        )
    if not tensor.is_floating_point():
        raise CheckpointError(f"{origin} stores {name} as {tensor.dtype}, which is no weight.", tensor=name)
    if tuple(tensor.shape) != tuple(shapes[target]):
        raise CheckpointError(
            f"{origin} gives {name} the shape {list(tensor.shape)}, "
            f"but its configuration asks for {list(shapes[target])}.",
            tensor=name,
        )
    state[target] = tensor
