"""A real query and key of smollm2, moved by the model's own rotation."""

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch

from model import stack
from model.errors import InputError
from model.labs import real_pair
from model.labs.bench import Bench
from model.labs.parameters.rope import RopeModel
from model.labs.reading import run_text
from model.labs.result import Chart
from model.labs.rope_model import run

pytestmark = pytest.mark.weights
SHORT = RopeModel(text="The cat sat down because it was tired.", layer=3, head=4, query=6, key=1)


def test_every_check_holds_and_progress_is_told(real_bench: Bench) -> None:
    told: list[float] = []
    result = run(SHORT, replace(real_bench, report=lambda fraction, *_: told.append(fraction)))
    assert [check.name for check in result.checks if not check.holds] == []
    assert len(result.checks) == 8
    assert told == sorted(told)
    assert len(told) >= 2


def test_the_score_moves_as_the_model_itself_says(real_bench: Bench) -> None:
    """The query alone moved on is the query of a run at shifted positions."""
    shifted = run_text(
        real_bench, "smollm2", SHORT.text, [{"kind": "set_position", "mode": "shift", "by": 40}]
    )
    own = run_text(real_bench, "smollm2", SHORT.text)
    site = f"decoder.self.{SHORT.layer}"
    q = shifted.trace.sites[site].q[SHORT.head, SHORT.query].double()
    k = own.trace.sites[site].k[own.trace.sites[site].key_head(SHORT.head), SHORT.key].double()
    chart = run(SHORT.model_copy(update={"shift": 40}), real_bench).series[0]
    assert isinstance(chart, Chart)
    apart, scale = torch.as_tensor(chart.lines[1].y), own.loaded.config.scale_of(site)
    assert apart[-1].item() == pytest.approx((q @ k).item() * scale, abs=1e-3)
    together = torch.as_tensor(chart.lines[0].y).numpy()
    assert np.ptp(together) < 1e-9
    assert np.ptp(apart.numpy()) > 0.1


def test_a_wrong_rotation_is_noticed(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    real = real_pair.rotation
    monkeypatch.setattr(real_pair, "rotation", lambda rope, at, dtype: real(rope, at**2, dtype))
    assert not all(check.holds for check in run(SHORT, real_bench).checks)


@pytest.mark.parametrize(
    ("factor", "modules"), [(0.5, [real_pair]), (-1.0, [stack]), (0.0, [real_pair, stack])]
)
def test_a_slower_reversed_or_missing_rotation_is_noticed_in_the_lab_and_in_the_model(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch, factor: float, modules: list[ModuleType]
) -> None:
    real = stack.rotation
    for module in modules:
        monkeypatch.setattr(module, "rotation", lambda rope, at, dtype: real(rope, at * factor, dtype))
    failed = [check.name for check in run(SHORT, real_bench).checks if not check.holds]
    assert "curve and formula, largest difference at any distance" in failed
    assert ("this text's score, by the formula from q and k before they were turned" in failed) == (
        stack in modules
    )


def test_a_key_that_the_mask_hides_is_said(real_bench: Bench) -> None:
    ahead, behind = SHORT.model_copy(update={"query": 1, "key": 6}), SHORT
    assert [run(one, real_bench).facts["hidden"] for one in (ahead, behind)] == [True, False]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "minilm"}, "choose smollm2"),
        ({"layer": 30}, "0 to 29"),
        ({"head": 9}, "0 to 8"),
        ({"query": 50}, "0 to "),
    ],
)
def test_what_is_not_there_is_refused(real_bench: Bench, given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(SHORT.model_copy(update=given), real_bench)
