"""Where one step of a plan sets a head's weights, others that change its scores are refused or told of."""

import pytest

from model.errors import PlanError
from model.plan import Plan
from tests import tiny_models as tiny

CONFIG = tiny.CONFIGS["encoder–decoder, relative"]
SITE = "decoder.self.1"
GIVEN = {"kind": "set_attention", "heads": [2], "sites": SITE, "weights": [[1.0] * 9] * 9}
UNIFORM = {"kind": "ablate_head", "mode": "uniform", "heads": [2], "sites": SITE}
BLOCK = {"kind": "block", "query": 5, "key": 4}
ANTICAUSAL = {"kind": "set_mask", "rule": {"name": "anticausal"}}
STEEP = {"kind": "set_scale", "times": 2.0}
REVERSED = {"kind": "set_position", "mode": "reverse", "sites": "decoder.self.*"}


def _notices(*steps: dict[str, object]) -> list[str]:
    return Plan.parse(list(steps)).canonical(CONFIG).notices(CONFIG)


@pytest.mark.parametrize("step", [BLOCK, ANTICAUSAL, STEEP])
def test_a_step_for_heads_with_given_weights_alone_is_refused(step: dict[str, object]) -> None:
    plan = Plan.parse([step | {"heads": [2], "sites": SITE}, GIVEN | {"heads": [2, 0]}])
    for check in (lambda: plan.canonical(CONFIG), lambda: plan.score_rules(CONFIG, 9, 9)):
        with pytest.raises(PlanError) as caught:
            check()
        assert "at decoder.self.1” would change nothing, because “weights given by hand" in str(caught.value)
        assert f"the weights of {SITE} head 2 " in str(caught.value)
        assert (caught.value.extra["site"], caught.value.extra["head"]) == (SITE, 2)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (BLOCK | {"sites": SITE}, f"5 → 4 blocked at {SITE}"),
        (ANTICAUSAL | {"sites": "decoder.self.*"}, "anticausal mask at decoder.self.*"),
        (STEEP | {"sites": SITE, "heads": [1, 2]}, f"own scale × 2 in heads 1, 2 at {SITE}"),
        (REVERSED, "positions reversed at decoder.self.*"),
    ],
)
def test_a_step_that_acts_elsewhere_too_is_told_of(step: dict[str, object], words: str) -> None:
    (notice,) = _notices(step, GIVEN)
    assert notice == (
        f"“weights given by hand in heads 2 at {SITE}” sets the weights of {SITE} head 2 whatever the scores"
        f" are, so “{words}” does not apply there."
    )


def test_heads_are_counted_where_there_are_several() -> None:
    (notice,) = _notices(STEEP | {"sites": "*"}, GIVEN | {"heads": [0, 1, 3]})
    assert f"of {SITE} head 0 and 2 more" in notice


def test_uniform_weights_respect_the_mask_but_no_scale() -> None:
    alone = {"heads": [2], "sites": SITE}
    assert _notices(BLOCK | alone, UNIFORM) == []
    with pytest.raises(PlanError, match=r"own scale × 2.*weights uniform"):
        _notices(STEEP | alone, UNIFORM)


def test_steps_that_do_not_meet_or_change_nothing_are_not_told_of() -> None:
    other = STEEP | {"sites": SITE, "heads": [1]}
    own = {"kind": "set_scale", "times": 1.0, "sites": SITE, "heads": [2]}
    assert _notices(other, GIVEN) == []
    assert _notices(own, GIVEN) == []
    assert _notices(GIVEN, {"kind": "drop_norm", "sublayer": "ffn", "sites": "decoder.self.*"}) == []
