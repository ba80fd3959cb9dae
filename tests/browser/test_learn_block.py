"""C13, C14, C16 in the browser: inputs change, and the numbers move to where theory or model has them."""

import pytest

from tests.browser.atlas import REFUSED
from tests.browser.learn import Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def table(learn: Learn, section: str, name: str) -> dict[str, list[str]]:
    """A table of a section, its rows by their first cell."""
    rows = learn.page.locator(f'#{section} [data-table="{name}"] tbody tr').all()
    cells = [row.locator("td").all_inner_texts() for row in rows]
    return {row[0]: row[1:] for row in cells}


def test_a_walk_through_one_block(learn: Learn) -> None:
    learn.visit("block")
    assert all(learn.checks("walk").values())
    steps = learn.page.locator(".block-walk button")
    assert steps.count() == 8
    assert "13 × 384" in steps.nth(0).inner_text()
    assert "13 × 1536" in steps.nth(4).inner_text()
    assert learn.fact("walk", "norms_stand") == "after each sum"
    formula = learn.page.locator("#walk [data-if] math:visible")
    assert formula.count() == 2
    post = formula.first.text_content()
    learn.set("walk", model="smollm2", layer=3)
    assert learn.fact("walk", "norms_stand") == "before each sublayer"
    assert formula.count() == 2
    assert formula.first.text_content() != post
    assert "11 × 1536" in steps.nth(5).inner_text()
    assert next(iter(learn.checks("walk"))).startswith("x + attention = x′")
    assert all(learn.checks("walk").values())


def test_a_step_is_chosen_by_keyboard(learn: Learn) -> None:
    learn.visit("block")
    learn.page.locator(".block-walk button").nth(4).focus()
    learn.page.keyboard.press("Enter")
    learn.page.wait_for_selector('.block-walk li:nth-child(5) [aria-pressed="true"]')
    learn.lab("walk")
    title = learn.page.locator('#walk [data-chart="tensor"] figcaption').inner_text()
    assert title.startswith("activation(up x′)")
    assert learn.page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"


def test_how_much_each_sublayer_writes(learn: Learn) -> None:
    learn.visit("block")
    learn.lab("writes")
    first, last = (number(learn.fact("writes", name)) for name in ("first", "last"))
    assert last > 20 * first
    assert learn.fact("writes", "more").startswith("feed-forward in layer 0")
    learn.set("writes", model="minilm")
    assert learn.fact("writes", "more") == "feed-forward in layer 5 (1.038)"
    checks = learn.checks("writes")
    assert all(checks.values())
    assert sum("largest difference of its share" in name for name in checks) == 2
    assert number(learn.fact("writes", "last")) < 2 * number(learn.fact("writes", "first"))


def test_residuals_carry_gradients_through_128_layers(learn: Learn) -> None:
    learn.visit("block")
    learn.lab("gradients")
    assert learn.fact("gradients", "blocks") == "64"
    learn.set("gradients", depth=128)
    ends = {name: [number(cell) for cell in row] for name, row in table(learn, "gradients", "ends").items()}
    assert 1 < ends["with residuals"][0] < 50
    assert ends["without residuals"][2] == pytest.approx(1, abs=1e-3)
    assert ends["without residuals or norms"][0] < 1e-20


def test_theory_stands_beside_the_measurement(learn: Learn) -> None:
    learn.visit("block")
    learn.set("gradients", parts="ffn", depth=100)
    bare = learn.check("gradients", "without residuals or norms: log₁₀ of the gradient at the input")
    # A Xavier layer keeps 0.32 of the second moment: 50 decades of log10 0.32, less half the scatter.
    assert bare["expected"] == pytest.approx(-24.74 - 0.54, abs=0.1)
    assert bare["holds"]
    assert all(learn.checks("gradients").values())


def test_statistics_before_and_after_each_norm(learn: Learn) -> None:
    learn.visit("block")
    learn.set("norms", layer=3)
    row = table(learn, "norms", "norms")["attention"]
    assert number(row[3]) == pytest.approx(1, abs=1e-3)
    assert number(row[2]) == pytest.approx(0, abs=1e-5)
    learn.set("norms", model="smollm2", layer=17)
    row = table(learn, "norms", "norms")["feed-forward"]
    assert number(row[3]) == pytest.approx(1, abs=1e-3)
    assert all(learn.checks("norms").values())


def test_norms_keep_activations_in_range(learn: Learn) -> None:
    learn.visit("block")
    learn.set("scale", init="he", depth=100)
    ends = {name: [number(cell) for cell in row] for name, row in table(learn, "scale", "ends").items()}
    # Theory: 2^50 without a norm, the square root of 101 with one before.
    assert ends["no norm"][1] > 1e13
    assert ends["LayerNorm"][1] == pytest.approx(101**0.5, rel=0.5)
    assert all(learn.checks("scale").values())
    learn.set("scale", compare="placement")
    assert learn.check("scale", "post-norm: log₁₀ of the rms at the output")["expected"] == 0
    ends = {name: [number(cell) for cell in row] for name, row in table(learn, "scale", "ends").items()}
    assert ends["post-norm"][1] == pytest.approx(1, abs=1e-3)


def test_parts_taken_out_of_a_real_model(learn: Learn) -> None:
    learn.visit("block")
    learn.lab("switches")
    assert number(learn.fact("switches", "changed_sameness")) == pytest.approx(1, abs=1e-3)
    assert learn.fact("switches", "verdict") == "the tokens can no longer be told apart: all point one way"
    learn.set("switches", leave_out="sublayer", around="ffn", where="one layer", layer=5)
    assert learn.fact("switches", "without") == "feed-forward in layer 5"
    assert "told apart" in learn.fact("switches", "verdict")
    assert all(learn.checks("switches").values())
    assert number(learn.fact("switches", "changed_sameness")) < 0.9
    learn.set("switches", model="smollm2", leave_out="norm", around="both", where="every layer")
    notes = learn.lab("switches").locator(".notes").inner_text()
    assert "grew out of range before layer" in notes
    assert not learn.page.locator('#switches [data-fact="verdict"]').is_visible()


def test_what_cannot_be_run_is_said(learn: Learn) -> None:
    learn.tolerate(REFUSED)
    learn.visit("block")
    learn.set("walk", layer=200)
    assert learn.problem("walk") == "Layer: write a whole number between 0 and 5."
    learn.set("walk", layer=5)
    assert learn.problem("walk") == ""
    learn.set("gradients", depth=129)
    assert learn.problem("gradients") == "Depth: write a whole number between 1 and 128."
    learn.set("gradients", depth=1)
    assert learn.problem("gradients") == ""
