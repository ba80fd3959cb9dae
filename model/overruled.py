"""Steps that meet heads whose weights another step sets: those win, and the step must not seem to act."""

from collections.abc import Sequence

from model.config import Sites
from model.errors import PlanError
from model.interventions import (
    AblateHead,
    AnyIntervention,
    Block,
    Cell,
    SetAttention,
    SetMask,
    SetPosition,
    SetScale,
)


def refuse_idle(steps: Sequence[AnyIntervention], model: Sites) -> None:
    """Raises PlanError for a step that would do nothing, since others set the weights of all its heads.

    Positions are not refused: they are those of a whole stack, and may change more than its weights.
    """
    for step in steps:
        cells = [] if isinstance(step, SetPosition) else step.targets(model)
        winners = _winners(step, steps, model)
        if cells and all(cell in winners for cell in cells):
            (site, head), winner = min(winners.items(), key=lambda item: item[0])
            raise PlanError(
                f"The step “{step.in_words()}” would change nothing, because “{winner.in_words()}” sets the"
                f" weights of {site} head {head} whatever its scores are: leave one of the two out.",
                site=site,
                head=head,
            )


def overruled(steps: Sequence[AnyIntervention], model: Sites) -> list[str]:
    """A sentence for each step that does not reach some of its heads, because another sets their weights."""
    sentences = []
    for step in steps:
        winners = _winners(step, steps, model)
        for winner in dict.fromkeys(winners.values()):
            cells = [cell for cell, found in winners.items() if found == winner]
            sentences.append(
                f"“{winner.in_words()}” sets the weights of {_named(cells)} whatever the scores are, so"
                f" “{step.in_words()}” does not apply there."
            )
    return sentences


def _winners(
    step: AnyIntervention, steps: Sequence[AnyIntervention], model: Sites
) -> dict[Cell, AnyIntervention]:
    """The cells of a step that changes scores where another step sets the weights, with that other step."""
    winners = [other for other in steps if _wins(other, step)]
    if not winners:
        return {}
    own = set(step.targets(model))
    return {cell: winner for winner in winners for cell in winner.targets(model) if cell in own}


def _wins(other: AnyIntervention, step: AnyIntervention) -> bool:
    """Whether weights that `other` sets know nothing of what `step` sets; uniform ones respect the mask."""
    match other:
        case SetAttention():
            return isinstance(step, SetMask | Block | SetScale | SetPosition)
        case AblateHead(mode="uniform"):
            return isinstance(step, SetScale | SetPosition)
        case _:
            return False


def _named(cells: list[Cell]) -> str:
    site, head = cells[0]
    return f"{site} head {head}" + (f" and {len(cells) - 1} more" if len(cells) > 1 else "")
