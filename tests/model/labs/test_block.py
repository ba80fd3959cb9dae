"""The walk through a block: every step is the model's, every sum is rebuilt, and a wrong one is seen."""

from dataclasses import replace

import pytest
import torch

from model.errors import InputError
from model.labs import block
from model.labs.bench import Bench
from model.labs.parameters.block import Walk
from model.labs.reading import run_text
from model.labs.result import Chart, Heatmap
from model.stack import Block

pytestmark = pytest.mark.weights

RECORD = ("resid", "mid", "attn_out", "ffn_out", "ffn_act")


@pytest.mark.parametrize(("model", "layers"), [("minilm", range(6)), ("smollm2", (0, 12, 29))])
def test_every_sum_and_sublayer_is_rebuilt(real_bench: Bench, model: str, layers: range) -> None:
    for layer in layers:
        result = block.run(Walk(model=model, layer=layer), real_bench)
        assert len(result.checks) == 4
        assert all(check.holds for check in result.checks), [
            check for check in result.checks if not check.holds
        ]


def test_a_tensor_of_another_layer_is_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = block._recorded
    monkeypatch.setattr(
        block, "_recorded", lambda ran, layer: replace(own(ran, layer), middle=own(ran, layer + 1).middle)
    )
    result = block.run(Walk(model="smollm2", layer=4), real_bench)
    assert [check.holds for check in result.checks] == [False, False, True, False]


@pytest.mark.parametrize(("model", "shapes"), [
    ("minilm", ["13 × 384"] * 4 + ["13 × 1536"] + ["13 × 384"] * 3),
    ("smollm2", ["11 × 576"] * 5 + ["11 × 1536"] + ["11 × 576"] * 2),
])  # fmt: skip
def test_the_steps_have_the_models_shapes(real_bench: Bench, model: str, shapes: list[str]) -> None:
    facts = block.run(Walk(model=model), real_bench).facts
    assert [row["shape"] for row in facts["steps"]] == shapes
    place = "post" if model == "minilm" else "pre"
    assert facts["placement"] == place
    assert facts["order"] == {one: one == place for one in ("pre", "post", "both")}


def test_the_steps_are_what_the_models_own_modules_make(real_bench: Bench) -> None:
    ran = run_text(real_bench, "smollm2", Walk().text, record=RECORD)
    one = ran.loaded.transformer.stack.blocks[3]
    assert isinstance(one, Block)
    kept = block._recorded(ran, 3)
    steps = [step.x.float() for step in block.walk(one, kept)]
    torch.testing.assert_close(steps[1], one.attention_norm(kept.before), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(steps[4], one.ffn_norm(kept.middle), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(steps[6], one.ffn(one.ffn_norm(kept.middle)[None])[0], rtol=1e-4, atol=1e-4)
    assert torch.equal(steps[7], ran.trace.resid["decoder", 4])


def test_the_chosen_step_is_drawn_and_its_histogram_is_a_density(real_bench: Bench) -> None:
    result = block.run(Walk(model="minilm", layer=2, step=4), real_bench)
    picture = next(one for one in result.series if isinstance(one, Heatmap))
    histogram = next(one for one in result.series if isinstance(one, Chart) and one.id == "histogram")
    assert picture.title.startswith(result.facts["chosen"])
    assert picture.values.shape == (13, 128)
    assert len(set(picture.rows)) == 13
    line = histogram.lines[0]
    width = line.x[1] - line.x[0]
    assert float(line.y.sum() * width) == pytest.approx(1, abs=0.01)
    assert any("128" in note or "127" in note for note in result.notes)


def test_colours_that_end_early_are_counted(real_bench: Bench) -> None:
    ran = run_text(real_bench, "smollm2", Walk().text, record=RECORD)
    x = ran.trace.resid["decoder", 15]
    end = 6 * x.std()
    beyond = int((x[:, :128].abs() > end).sum())
    notes = block.run(Walk(model="smollm2", layer=15), real_bench).notes
    assert (f"{beyond} of the {x[:, :128].numel()}" in " ".join(notes)) == (beyond > 0)


def test_what_there_is_not_is_refused(real_bench: Bench) -> None:
    with pytest.raises(InputError, match="There is no layer 200: this model has layers 0 to 5"):
        block.run(Walk(layer=200), real_bench)
    with pytest.raises(InputError, match="takes 512: shorten"):
        block.run(Walk(model="smollm2", text="word " * 600), real_bench)


def test_one_token_is_enough(real_bench: Bench) -> None:
    assert all(check.holds for check in block.run(Walk(model="smollm2", text="a"), real_bench).checks)
