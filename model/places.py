"""Where a stack is told its tokens stand: at their own positions, or where a plan puts them."""

import torch
from torch import Tensor

from model.config import Learned, NoPosition, Position, Rope, Sinusoidal
from model.errors import PlanError
from model.interventions import SetPosition


def placed(change: SetPosition | None, positions: Tensor) -> Tensor | None:
    """Positions [B, T] under a change; None where it takes them away."""
    if change is None or change.mode == "own":
        return positions
    match change.mode:
        case "off":
            return None
        case "reverse":
            return positions.flip(1)  # [B, T]
        case "shift":
            return positions + change.by  # [B, T]
        case "shuffle":
            order = torch.randperm(positions.shape[1], generator=torch.Generator().manual_seed(change.seed))
            return positions[:, order.to(positions.device)]  # [B, T]


def check_places(change: SetPosition, position: Position, tokens: int) -> None:
    """Raises PlanError where a change does not fit the kind of positions a stack has."""
    if isinstance(position, NoPosition):
        raise PlanError("This model has no positions, so a plan cannot change them.")
    if change.base is not None and not isinstance(position, Rope):
        raise PlanError("A rope base can be set only where positions are rotated into q and k.")
    if change.from_layer and isinstance(position, Learned | Sinusoidal):
        raise PlanError(
            "This model's positions enter with the embeddings, so they cannot change from a later layer."
        )
    if change.mode == "shift" and isinstance(position, Learned):
        last = position.rows - position.offset - tokens
        if not -position.offset <= change.by <= last:
            raise PlanError(
                f"Positions shifted by {change.by} leave this model's table of {position.rows}: "
                f"shift {tokens} tokens by at most {last}."
            )
