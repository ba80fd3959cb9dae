"""The page's own arithmetic and formats, run where they run: in the browser."""

import base64
import io
import json
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import Opener

pytestmark = [pytest.mark.browser, pytest.mark.weights]

READ = """async (packed) => {
  const { readNpy } = await import('/static/js/payload.js');
  const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
  try {
    const { data, shape } = readNpy(bytes.buffer);
    return { data: [...data].map(Number), shape };
  } catch (error) {
    return { error: `${error.constructor.name}: ${error.message}` };
  }
}"""


@pytest.fixture(scope="module")
def empty(browser: Browser, server: str) -> Iterator[Page]:
    """A page of the server, for its modules."""
    page = browser.new_page()
    page.goto(f"{server}docs")
    yield page
    page.close()


def packed(array: np.ndarray) -> str:
    file = io.BytesIO()
    np.save(file, array)
    return base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize("dtype", ["u1", "i1", "<i2", "<u2", "<i4", "<u4", "<f4", "<f8", "?"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 5)])
def test_npy_files_read_as_numpy_wrote_them(empty: Page, dtype: str, shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2 + 1).astype(dtype)
    assert empty.evaluate(READ, packed(array)) == {
        "data": array.astype(float).ravel().tolist(),
        "shape": list(shape),
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<html>not a tensor</html>", "magic bytes"),
        (b"\x93NUMPY\x01\x00\xff\xff{'descr'", "cut short"),
        (None, "<c16 is not supported"),
    ],
)
def test_other_files_are_refused_by_name(empty: Page, content: bytes | None, words: str) -> None:
    body = packed(np.zeros(2, "<c16")) if content is None else base64.b64encode(content).decode()
    assert words in empty.evaluate(READ, body)["error"]


def test_a_short_tensor_is_refused(empty: Page) -> None:
    whole = base64.b64decode(packed(np.zeros((4, 4), "<f4")))
    answer = empty.evaluate(READ, base64.b64encode(whole[:-4]).decode())
    assert "holds 60 bytes, its shape needs 64" in answer["error"]


STATE = """async (text) => {
  const { decode, encode, initial } = await import('/static/js/state.js');
  const state = { ...initial('minilm'), text };
  return (await decode(await encode(state))).text === text;
}"""


@pytest.mark.parametrize("text", ["", "x" * 20000, "המחיר\n25\u0010", "💩 </script>"])
def test_a_state_survives_its_address(empty: Page, text: str) -> None:
    assert empty.evaluate(STATE, text)


def test_even_half_a_surrogate_pair_survives(empty: Page) -> None:
    body = STATE.replace("async (text) => {", "async () => { const text = 'a \\ud800 b';")
    assert empty.evaluate(body)


def test_code_points_become_utf16_units(empty: Page) -> None:
    texts = ["", "abc", "a💩b", "💩💩"]
    script = """async (texts) => {
      const { unitOffsets } = await import('/static/js/spans.js');
      return texts.map((text) => [...unitOffsets(text)]);
    }"""
    expected = [[len(text[:i].encode("utf-16-le")) // 2 for i in range(len(text) + 1)] for text in texts]
    assert empty.evaluate(script, texts) == expected


def test_the_scale_of_colours_never_turns_back(empty: Page) -> None:
    script = """async () => {
      const { TRANSFER, table } = await import('/static/js/colour.js');
      const greens = (name) => [...table('#ffffff', '#08306b', name)].map((pixel) => (pixel >> 8) & 255);
      return Object.keys(TRANSFER).map(greens);
    }"""
    for greens in empty.evaluate(script):
        assert greens == sorted(greens, reverse=True)
        assert (greens[0], greens[-1]) == (255, 0x30)


def test_displayed_steps_add_up_for_any_scores(empty: Page) -> None:
    random = np.random.default_rng(7)
    pairs = []
    for _ in range(300):
        scores = np.float32(random.normal(0, 6, 20))
        dot, scale = float(np.float32(scores[3] * 8)), 0.125
        scaled = float(np.float32(dot * scale))
        scores[3] = scaled
        total = float(np.exp(scores.astype(float) - scores.max()).sum())
        weight = float(np.exp(scaled - float(scores.max())) / total)
        pairs.append(
            {"dot": dot, "scale": scale, "scaled": scaled, "softcap": None, "bias": 0, "score": scaled}
            | {"mask": "open", "row_max": float(scores.max()), "row_sum_exp": total, "weight": weight}
        )
    script = """async (pairs) => {
      const { arithmetic } = await import('/static/js/arithmetic.js');
      return JSON.stringify(pairs.map((pair) => arithmetic(pair)));
    }"""
    shown = json.loads(empty.evaluate(script, pairs))
    assert all(entry["adds"] for entry in shown)


GIVEN_PAIR = {
    "q": [1.0, 2.0], "k": [0.5, 0.25], "products": [0.5, 0.5], "v": [1.0, 1.0], "dot": 1.0, "scale": 0.5,
    "scale_words": "1/2", "scaled": 0.5, "softcap": None, "bias": 0, "bias_words": "none: no positions",
    "row_max": 3.0, "row_sum_exp": 1.5, "weight": 0.25, "weight_words": "given by hand",
    "contribution_norm": 1.0,
}  # fmt: skip


@pytest.mark.parametrize(("mask", "score"), [("open", 0.5), ("closed", None)])
def test_a_weight_that_does_not_follow_from_the_scores_is_not_shown_as_if_it_did(
    empty: Page, mask: str, score: float | None
) -> None:
    script = """async (pair) => {
      const { PairPanel } = await import('/static/js/ui/pairpanel.js');
      const root = document.createElement('section');
      new PairPanel(root, () => {}).show(pair, { query: 'a', key: 'b', head: 'L0H0' });
      const cells = [...root.querySelectorAll('[data-step]')];
      const steps = cells.map((cell) => [cell.dataset.step, cell.textContent]);
      const text = (selector) => root.querySelector(selector).textContent;
      const { adds } = root.querySelector('.arithmetic').dataset;
      return [steps, adds, text('.step-weight th'), text('.pair-note')];
    }"""
    steps, adds, label, note = empty.evaluate(script, GIVEN_PAIR | {"mask": mask, "score": score})
    shown = dict(steps)
    assert shown["weight"] == "0.2500"
    assert not {"max", "exp", "sum"} & set(shown)
    assert (adds, label) == ("true", "weight, given by hand")
    assert "the weight does not follow from the score" in note
    assert "rounding" not in note


def test_pages_that_are_only_read(opened: Opener, server: str) -> None:
    page = opened(server)
    page.page.goto(f"{server}docs")
    assert page.page.get_by_text("/overview/", exact=False).count()
    assert page.overflow() <= 0
