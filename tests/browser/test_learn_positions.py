"""The page on positions: each claim's numbers follow what is changed, to the value that theory names."""

import math
from typing import Any

import pytest
from playwright.sync_api import Locator

from tests.browser.atlas import REFUSED
from tests.browser.learn import Learn, number

pytestmark = [pytest.mark.browser, pytest.mark.weights]


@pytest.fixture
def page(learn: Learn) -> Learn:
    return learn.visit("positions")


def test_the_norm_is_half_the_width_and_the_wavelength_follows_the_pair(page: Learn) -> None:
    page.set("waves", d_model=512)
    page.set("waves", pair=100)
    norm = page.check("waves", "‖PE‖² = d/2 at every position")
    assert (norm["measured"], norm["holds"]) == (pytest.approx(256), True)
    assert number(page.fact("waves", "wavelength")) == pytest.approx(
        2 * math.pi * 10000 ** (200 / 512), rel=1e-3
    )
    page.set("waves", pair=5)
    assert number(page.fact("waves", "wavelength")) == pytest.approx(
        2 * math.pi * 10000 ** (10 / 512), rel=1e-3
    )


def test_wavelengths_follow_the_base(page: Learn) -> None:
    page.set("wavelengths", base=100, d_model=64)
    assert number(page.fact("wavelengths", "longest")) == pytest.approx(
        2 * math.pi * 100 ** (62 / 64), rel=1e-3
    )
    assert all(page.checks("wavelengths").values())


def test_dot_products_are_the_published_ones(page: Learn) -> None:
    page.set("distance", d_model=512, position=31, offset=50)
    for step in (1, 7, 50):
        found = page.check("distance", f"PE(p) · PE(p + {step}) at every p")
        assert found["holds"]
        assert found["measured"] == pytest.approx(
            sum(math.cos(step / 10000 ** (i / 256)) for i in range(256)), abs=1e-3
        )
    assert page.fact("distance", "dot") == page.fact("distance", "dot_expected") == "131.1"


def test_the_rotation_carries_any_position_on(page: Learn) -> None:
    page.set("rotation", position=60)
    for offset, step, plus in ((1, "1", "p + 1"), (-3, "−3", "p − 3"), (40, "40", "p + 40")):
        page.set("rotation", offset=offset)
        assert page.fact("rotation", "end") == str(60 + offset)
        assert page.check("rotation", f"R({step}) PE(p) less PE({plus}) at every p, largest")["holds"]


def test_no_position_below_zero_is_shown(page: Learn) -> None:
    page.tolerate(REFUSED)
    page.set("rotation", position=5, offset=-6)
    assert "positions begin at 0" in page.problem("rotation")
    page.set("rotation", offset=-5)
    assert (page.problem("rotation"), page.fact("rotation", "end")) == ("", "0")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"d_model": 7}, "a multiple of 2"),
        ({"base": 0}, "Base: write a number between 1 and 1,000,000,000."),
        ({"base": -5}, "Base: write a number between 1 and"),
        ({"length": "long"}, "Length: write a whole number between 1 and 2,048."),
    ],
)
def test_what_is_no_wave_gets_a_sentence_and_the_page_goes_on(
    page: Learn, values: dict[str, Any], words: str
) -> None:
    page.tolerate(REFUSED)
    page.set("waves", **values)
    assert words in page.problem("waves")
    page.set("waves", d_model=8, base=10, length=1, pair=0)
    assert page.problem("waves") == ""
    assert page.check("waves", "‖PE‖² = d/2 at every position")["measured"] == pytest.approx(4)


def _tip(page: Learn, plane: int, which: str) -> Locator:
    return page.page.locator(f'#rope [data-plane="{plane}"] [data-tip="{which}"]')


def _drag(page: Learn, tip: Locator, by: tuple[int, int]) -> None:
    tip.scroll_into_view_if_needed()
    box = tip.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    for step in range(1, 6):
        page.page.mouse.move(x + by[0] * step / 5, y + by[1] * step / 5)
    page.page.mouse.up()


def _rested(page: Learn, m: int) -> None:
    page.page.wait_for_function(
        """m => document.querySelector('#rope [data-fact="m"]').textContent.replace(',', '') === String(m)""",
        arg=m,
    )


def test_dragged_together_the_score_stays_and_apart_it_moves(page: Learn) -> None:
    page.lab("rope")
    score, distance = page.fact("rope", "score"), page.fact("rope", "distance")
    _drag(page, _tip(page, 8, "m"), (40, -20))
    moved = int(_tip(page, 8, "m").get_attribute("aria-valuenow") or "")
    assert moved != 20
    _rested(page, moved)
    assert (page.fact("rope", "score"), page.fact("rope", "distance")) == (score, distance)
    page.page.locator('#rope [data-mode="apart"]').click()
    _drag(page, _tip(page, 8, "m"), (-60, -30))
    apart = int(_tip(page, 8, "m").get_attribute("aria-valuenow") or "")
    assert apart != moved
    _rested(page, apart)
    assert page.fact("rope", "score") != score
    assert page.fact("rope", "distance") != distance
    assert all(page.checks("rope").values())


def test_planes_are_moved_by_keys_and_stop_at_the_first_position(page: Learn) -> None:
    page.lab("rope")
    score = page.fact("rope", "score")
    tip = _tip(page, 0, "n")
    tip.press("PageUp")
    _rested(page, 36)
    assert (page.fact("rope", "n"), page.fact("rope", "score")) == ("28", score)
    for _ in range(3):
        tip.press("PageDown")
    _rested(page, 8)
    assert (page.fact("rope", "n"), page.fact("rope", "score")) == ("0", score)
    assert "goes no further" in page.page.locator("#rope .rope-planes").inner_text()


def test_the_score_depends_on_the_distance_alone_in_both_layouts(page: Learn) -> None:
    page.set("rope", m=30, n=10, layout="interleaved")
    score = page.fact("rope", "score")
    page.set("rope", m=30_020, n=30_000)
    assert page.fact("rope", "score") == score
    assert page.check("rope", "m and n moved together: largest change of the score")["measured"] <= 1e-9
    page.set("rope", layout="half-split")
    assert page.fact("rope", "score") != score
    assert page.fact("rope", "score_other_layout") == score


def test_stretching_slows_the_slowest_plane_by_the_factor(page: Learn) -> None:
    page.set("rope-stretch", scaling="none", base=10000)
    plain = number(page.fact("rope-stretch", "wavelength_last"))
    assert plain == pytest.approx(2 * math.pi * 10000 ** (62 / 64), rel=1e-3)
    page.set("rope-stretch", scaling="linear", factor=4)
    assert number(page.fact("rope-stretch", "wavelength_last")) == pytest.approx(4 * plain, rel=1e-2)
    assert number(page.fact("rope-stretch", "wavelength_first")) == pytest.approx(8 * math.pi, rel=1e-3)
    page.set("rope-stretch", scaling="llama3")
    assert number(page.fact("rope-stretch", "wavelength_first")) == pytest.approx(2 * math.pi, rel=1e-3)


def test_a_real_query_and_key_keep_their_score_when_both_move(page: Learn) -> None:
    page.set("rope-real", text="The cat sat down.", layer=2, head=4, query=3, key=1, shift=60)
    assert page.fact("rope-real", "query_token").strip() == "down"
    assert page.checks("rope-real")
    assert all(page.checks("rope-real").values())
    assert "#" in (page.page.locator("#rope-real .see").get_attribute("href") or "")


def test_slopes_are_powers_of_two_and_buckets_are_t5s(page: Learn) -> None:
    page.set("alibi", heads=16, head=2)
    assert number(page.fact("alibi", "slope")) == pytest.approx(2**-1.5, rel=1e-3)
    assert page.check("alibi", "all slopes and the paper's rule, largest difference")["measured"] == 0
    page.set("t5", distance=-100)
    assert (page.fact("t5", "bucket"), page.fact("t5", "shared")) == ("15", "−91 and all beyond")
    page.set("t5", distance=12)
    assert page.fact("t5", "bucket") == "25"


def test_the_learned_table_is_compared_and_taken_apart(page: Learn) -> None:
    page.set("learned", position=200)
    assert page.fact("learned", "nearest") in ("199", "201")
    assert page.charts("learned") == ["one", "similarity", "table"]
    assert all(page.checks("learned-waves").values())
    assert page.page.locator("#learned-waves .lab-table tbody tr").count() == 5


def test_order_is_lost_without_positions_and_found_with_them_or_a_causal_mask(page: Learn) -> None:
    page.lab("order")
    assert number(page.fact("order", "largest")) <= 1e-5
    page.set("order", positions="on")
    assert number(page.fact("order", "largest")) > 0.1
    page.set("order", positions="off", mask="causal")
    assert number(page.fact("order", "largest")) > 0.1
    page.set("order", mask="own", text="the cat sees a dog", other="a dog sees the cat")
    assert number(page.fact("order", "largest")) <= 1e-5
    page.tolerate(REFUSED)
    page.set("order", other="a dog sees the bird")
    assert "same tokens" in page.problem("order")
    page.set("order", other="the cat sees a dog")
    assert page.page.locator("#order .finding:visible").all_inner_texts() == [
        "Both texts are the same: there is nothing to tell apart. Give the same words in another order."
    ]


def test_it_is_said_to_fade_only_where_it_does(page: Learn) -> None:
    page.set("rope-distance", length=256)
    assert "the bound sinks" in page.page.locator("#rope-distance .finding").inner_text()
    page.set("rope-distance", base=1)
    assert "hardly anything fades" in page.page.locator("#rope-distance .finding").inner_text()


def test_a_key_that_the_mask_hides_is_said(page: Learn) -> None:
    page.lab("rope-real")
    assert "hides it" not in page.page.locator("#rope-real .finding").inner_text()
    page.set("rope-real", query=1, key=3)
    assert "hides it" in page.page.locator("#rope-real .finding").inner_text()


def test_the_share_of_the_first_token_tells_the_place_under_a_causal_mask(page: Learn) -> None:
    page.set("mask-order", word="tree", repeats=12)
    assert all(page.checks("mask-order").values())
    first, last = (number(page.fact("mask-order", f"{which}_share")) for which in ("first", "last"))
    assert last == pytest.approx(1 / (1 + 12 * (1 / first - 1)), rel=1e-2)


def test_past_the_length_added_positions_fail_and_alibi_holds(page: Learn) -> None:
    page.set("past-length", trained=16, times=2, steps=120)
    assert page.fact("past-length", "best") == "ALiBi"
    assert all(page.checks("past-length").values())
    assert page.page.locator("#past-length .lab-table tbody tr").count() == 6
