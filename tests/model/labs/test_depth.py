"""Deep random stacks: against theory, and against numpy's own forward and backward."""

import math
from typing import Any

import numpy as np
import pytest
from torch import Tensor

from model.config import RMSNorm
from model.errors import InputError
from model.labs import depth, depth_layers, depth_theory
from model.labs.bench import Bench, Cancelled
from model.labs.depth_theory import expected_gradient, expected_scale, kept_share, mean_scale, scatter
from model.labs.parameters.block import Depth
from model.labs.result import Chart, Line, Result
from model.stack import Block

BENCH = Bench()


def lines(result: Result, chart: str) -> dict[tuple[str, str], Line]:
    found = next(one for one in result.series if isinstance(one, Chart) and one.id == chart)
    return {(line.name, line.origin): line for line in found.lines}


def numbers(result: Result, chart: str, name: str) -> list[float]:
    return list(lines(result, chart)[name, "measured"].y)


def test_the_share_a_layer_keeps() -> None:
    # Glorot: variance 2 / (D + 4D) twice, so D · 2/5D · ½ · 4D · 2/5D. He: kept by design.
    assert kept_share(Depth(init="xavier")) == pytest.approx(0.32)
    assert kept_share(Depth(init="he", width=24)) == pytest.approx(1)


def test_theory_in_closed_form() -> None:
    plain = Depth(parts="ffn", residual=False, norm="none", depth=128)
    assert mean_scale(plain)[-1] == pytest.approx(0.32**64)  # type: ignore[index]
    # 128 layers of variance 5/256 + 2/64 each; the median lies half of it below the mean, for squares.
    spread = 128 * (5 / 256 + 2 / 64)
    assert scatter(plain)[-1] == pytest.approx(spread)
    assert expected_scale(plain)[-1] == pytest.approx(0.32**64 * math.exp(-spread / 4))  # type: ignore[index]
    assert expected_gradient(plain)[0] == pytest.approx(0.32**64 * math.exp(-spread / 4))  # type: ignore[index]
    assert expected_gradient(plain)[-1] == 1  # type: ignore[index]
    pre = Depth(parts="ffn", init="he", depth=99)
    assert mean_scale(pre)[-1] == pytest.approx(10)  # type: ignore[index]
    assert expected_scale(Depth(parts="both")) is None


@pytest.mark.parametrize("given", [{"width": 16, "norm": "rms", "placement": "post", "init": "he"}, {}])
def test_the_theory_that_is_drawn_is_the_one_that_is_checked(given: Any) -> None:
    result = depth.run(Depth.model_validate({"parts": "ffn", "depth": 128, **given}), BENCH)
    ends = {
        "gradient": ("log₁₀ of the gradient at the input", 0),
        "activation": ("log₁₀ of the rms at the output", -1),
    }
    for chart, (what, place) in ends.items():
        theory = {name: line.y for (name, origin), line in lines(result, chart).items() if origin == "theory"}
        checks = {check.name: check.expected for check in result.checks if what in check.name}
        assert checks
        drawn = {f"{name}: {what}": math.log10(y[place]) for name, y in theory.items()}  # type: ignore[arg-type]
        assert drawn == pytest.approx(checks)


@pytest.mark.parametrize("norm", ["layer", "rms", "none"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_theory_with_another_share_is_seen_between_placements(
    monkeypatch: pytest.MonkeyPatch, norm: Any, factor: float
) -> None:
    for module in (depth_theory, depth_layers):
        monkeypatch.setattr(module, "kept_share", lambda settings: factor * kept_share(settings))
    failing = _failing(norm=norm)
    assert any(name.startswith("pre-norm") for name in failing)
    assert any(name.startswith("post-norm") for name in failing)


AGAIN = ("by the block's formula", "by finite differences", "by another formula")


@pytest.mark.parametrize(
    "given", [{}, {"compare": "norms"}, {"compare": "placement", "init": "he"}, {"depth": 1, "width": 16}]
)
def test_stacks_with_attention_are_computed_once_more(given: Any) -> None:
    result = depth.run(Depth.model_validate({"depth": 12, **given}), BENCH)
    assert {what for what in AGAIN for check in result.checks if what in check.name} == set(AGAIN)
    assert [check.name for check in result.checks if not check.holds] == []


def _broken(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Any) -> set[str]:
    right = depth.again

    def spoiled(*given: Any) -> Any:
        *rest, drawn = given
        parts = zip(("scale", "gradient", "sameness"), drawn, strict=True)
        return right(*rest, tuple(wrong(numbers) if part == name else numbers for part, numbers in parts))

    monkeypatch.setattr(depth, "again", spoiled)
    return {
        what
        for check in depth.run(Depth(depth=6), BENCH).checks
        if not check.holds
        for what in AGAIN
        if what in check.name
    }


@pytest.mark.parametrize(("part", "what"), list(zip(("scale", "gradient", "sameness"), AGAIN, strict=True)))
def test_drawn_numbers_that_are_wrong_are_seen(monkeypatch: pytest.MonkeyPatch, part: str, what: str) -> None:
    assert _broken(
        monkeypatch, part, lambda numbers: [1.01 * number + 0.01 * i for i, number in enumerate(numbers)]
    ) == {what}


def test_an_attention_that_does_not_mix_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Block._sublayer
    monkeypatch.setattr(
        Block,
        "_sublayer",
        lambda self, name, x, part, run: x if name == "attention" else right(self, name, x, part, run),
    )
    checks = depth.run(Depth(depth=6), BENCH).checks
    assert not all(check.holds for check in checks if AGAIN[0] in check.name)


def test_a_variant_has_one_colour_in_every_picture() -> None:
    result = depth.run(Depth(compare="norms", parts="ffn", depth=4), BENCH)
    orders = [
        [line.name for line in chart.lines if line.origin == "measured"]
        for chart in result.series
        if isinstance(chart, Chart)
    ]
    assert orders == [["no norm", "LayerNorm", "RMSNorm"]] * 3
    for chart in result.series:
        assert isinstance(chart, Chart)
        assert [line.origin for line in chart.lines][:3] == ["measured"] * 3


@pytest.mark.parametrize("compare", ["residuals", "norms", "placement"])
@pytest.mark.parametrize("init", ["xavier", "he"])
def test_a_hundred_layers_do_what_theory_says(compare: Any, init: Any) -> None:
    result = depth.run(Depth(compare=compare, init=init, parts="ffn", depth=100, seed=5), BENCH)
    assert result.checks
    assert all(check.holds for check in result.checks), [check for check in result.checks if not check.holds]


def test_a_wrong_theory_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        depth, "expected_scale", lambda settings: [0.7**step for step in range(settings.depth + 1)]
    )
    result = depth.run(Depth(parts="ffn", residual=False, norm="none", depth=100), BENCH)
    held = {check.name: check.holds for check in result.checks if "log₁₀ of the rms" in check.name}
    assert set(held.values()) == {False}


def test_forward_and_backward_are_numpys() -> None:
    settings = Depth(parts="ffn", norm="none", depth=3, width=16, seed=9)
    ends, *layers = depth._weights(settings, 0)
    x, signals, masks = ends["input"].numpy(), [], []
    for layer in layers:
        signals.append(np.sqrt((x**2).mean()))
        up = x @ layer["ffn.up.weight"].numpy().T
        masks.append(up > 0)
        x = x + np.maximum(up, 0) @ layer["ffn.down.weight"].numpy().T
    signals.append(np.sqrt((x**2).mean()))
    gradient = ends["output"].numpy()
    start, norms = np.linalg.norm(gradient), [1.0]
    for layer, mask in zip(reversed(layers), reversed(masks), strict=True):
        back = (gradient @ layer["ffn.down.weight"].numpy()) * mask
        gradient = gradient + back @ layer["ffn.up.weight"].numpy()
        norms.append(np.linalg.norm(gradient) / start)
    result = depth.run(settings, BENCH)
    assert numbers(result, "activation", "with residuals") == pytest.approx(signals, rel=1e-9)
    assert numbers(result, "gradient", "with residuals") == pytest.approx(norms[::-1], rel=1e-9)


def test_residuals_carry_gradients_through_128_blocks() -> None:
    result = depth.run(Depth(depth=128), BENCH)
    ends = {row["stack"]: row for row in result.facts["ends"]}
    assert 1 < ends["with residuals"]["gradient at the input"] < 50
    assert ends["without residuals"]["gradient at the input"] < 0.1
    assert ends["without residuals or norms"]["gradient at the input"] < 1e-20
    assert ends["without residuals"]["likeness of tokens"] == pytest.approx(1, abs=1e-6)
    assert ends["with residuals"]["likeness of tokens"] < 0.99


def test_norms_keep_activations_in_range() -> None:
    result = depth.run(Depth(compare="norms", depth=64, init="he"), BENCH)
    ends = {row["stack"]: row["rms at the output"] for row in result.facts["ends"]}
    assert ends["no norm"] > 1e8
    assert ends["LayerNorm"] < 30
    assert ends["RMSNorm"] < 30
    post = depth.run(Depth(compare="placement", depth=64), BENCH).facts["ends"][1]
    assert post["rms at the output"] == pytest.approx(1, abs=1e-3)


def test_seeds_repeat_and_differ() -> None:
    first, again, other = (depth.run(Depth(depth=4, seed=seed), BENCH).facts["ends"] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_repeats_give_a_band() -> None:
    line = lines(depth.run(Depth(depth=8, repeats=3), BENCH), "gradient")["with residuals", "measured"]
    assert line.low is not None
    assert line.high is not None
    assert all(low <= middle <= high for low, middle, high in zip(line.low, line.y, line.high, strict=True))
    assert line.low[0] < line.high[0]


def test_the_smallest_stack_and_the_last_seed() -> None:
    result = depth.run(Depth(depth=1, width=16, seed=2**32 - 1, repeats=2), BENCH)
    assert numbers(result, "gradient", "with residuals")[-1] == pytest.approx(1)


def test_what_leaves_the_range_of_numbers_is_said() -> None:
    result = depth.run(Depth(compare="norms", depth=128, init="he"), BENCH)
    assert any("out of the range" in note for note in result.notes)
    assert not math.isfinite(result.facts["ends"][0]["gradient at the input"])


def test_too_much_is_refused() -> None:
    with pytest.raises(InputError, match="5 stacks of 128 blocks of width 128 would take too long"):
        depth.run(Depth(depth=128, width=128, repeats=5), BENCH)


def test_it_stops_when_nobody_waits() -> None:
    def leave(_fraction: float, _words: str, _so_far: Result | None) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        depth.run(Depth(), Bench(report=leave))


def _failing(**given: Any) -> set[str]:
    result = depth.run(Depth.model_validate({"parts": "ffn", "compare": "placement", **given}), BENCH)
    assert result.checks
    return {check.name for check in result.checks if not check.holds}


@pytest.mark.parametrize("norm", ["layer", "rms", "none"])
def test_what_is_right_holds_at_few_layers_and_many(norm: Any) -> None:
    for size in (1, 8, 64):
        assert _failing(norm=norm, depth=size) == set()


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("gain", [0.75, 1.25])
def test_a_norm_that_is_off_by_a_quarter_is_seen(
    monkeypatch: pytest.MonkeyPatch, norm: Any, gain: float
) -> None:
    right = Block._normed
    monkeypatch.setattr(Block, "_normed", lambda *given: gain * right(*given))
    failing = _failing(norm=norm)
    assert "pre-norm: mean square that a layer writes, of what it reads" in failing
    assert "post-norm: log₁₀ of the rms at the output" in failing


def test_a_mean_that_is_not_taken_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(depth.NORMS, "layer", RMSNorm(depth.EPS))
    failing = {name for name in _failing(norm="layer") if not any(what in name for what in AGAIN)}
    assert failing == {"post-norm: mean of a token's vector at the output"}


@pytest.mark.parametrize("scale", [0.0, 0.9, 1.1, 2.0])
def test_a_residual_of_another_scale_is_seen(monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    right = Block._sublayer

    def scaled(self: Block, name: Any, x: Tensor, part: Any, run: Any) -> Tensor:
        out = right(self, name, x, part, run)
        if name != "ffn" or self.placement != "pre":
            return out
        return out + (scale - 1) * x

    monkeypatch.setattr(Block, "_sublayer", scaled)
    failing = _failing()
    assert any(name.startswith("pre-norm") for name in failing)
    assert not any(name.startswith("post-norm") for name in failing)


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_a_residual_of_another_scale_under_a_post_norm_is_seen(
    monkeypatch: pytest.MonkeyPatch, scale: float
) -> None:
    def scaled(self: Block, name: Any, x: Tensor, part: Any, run: Any) -> Tensor:
        return self._normed("ffn", scale * x + part(x), run) if name == "ffn" else x

    monkeypatch.setattr(Block, "_sublayer", scaled)
    result = depth.run(Depth(parts="ffn", placement="post"), BENCH)
    held = {check.name: check.holds for check in result.checks}
    assert not held["with residuals: cosine of the stream before a layer and after it"]


def test_more_stacks_make_the_tolerance_narrower() -> None:
    one, five = (depth.run(Depth(parts="ffn", depth=4, repeats=repeats), BENCH).checks for repeats in (1, 5))
    for wide, narrow in zip(one, five, strict=True):
        assert narrow.name == wide.name
        if not any(what in wide.name for what in AGAIN):
            assert narrow.tolerance < wide.tolerance


def test_each_stack_is_shown_as_soon_as_it_ran() -> None:
    heard: list[Result | None] = []
    depth.run(Depth(depth=2, repeats=2), Bench(report=lambda _share, _words, so_far: heard.append(so_far)))
    assert heard[0] is None
    drawn = [[row["stack"] for row in so_far.facts["ends"]] for so_far in heard[1:] if so_far is not None]
    names = ["with residuals", "without residuals", "without residuals or norms"]
    assert drawn == [names[:1], names[:2], names, names, names]
