"""What leaves the page."""

import csv
import io
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.browser.atlas import Atlas

pytestmark = [pytest.mark.browser, pytest.mark.weights]


def export(atlas: Atlas, menu: str, item: str) -> bytes:
    atlas.find(f"export-{menu}").locator("summary").click()
    with atlas.page.expect_download() as download:
        atlas.find(f"export-{menu}").get_by_text(item, exact=True).click()
    return Path(download.value.path()).read_bytes()


def test_the_csv_holds_the_weights_and_no_formula(atlas: Atlas) -> None:
    atlas.run("=SUM(A1) +1 -2 @x")
    rows = list(csv.reader(io.StringIO(export(atlas, "picture", "Weights as CSV").decode("utf-8-sig"))))
    tokens = [token["text"] for token in atlas.trace()["tokens"]]
    assert [cell.removeprefix("'") for cell in rows[0][1:]] == tokens
    assert not [cell for cell in rows[0] + [row[0] for row in rows] if cell[0] in "=+-@"]
    head = atlas.picked()[0]
    layer, number = head[1:].split("H")
    weights = atlas.tensor(f"{atlas.trace()['id']}/attention/encoder.self.{layer}/{number}")
    assert np.allclose(np.array([row[1:] for row in rows[1:]], float), weights, atol=1e-7)


def test_the_svg_is_well_formed_and_labelled(atlas: Atlas) -> None:
    atlas.run("a < b & <i>c</i>")
    texts = [
        "".join(node.itertext()) for node in ET.fromstring(export(atlas, "picture", "Matrix as SVG")).iter()
    ]
    for token in ("<", "&", "i"):
        assert token in texts
    assert any("attention weights" in text for text in texts)


def test_the_npy_is_exact_and_the_png_a_picture(atlas: Atlas) -> None:
    weights = np.load(io.BytesIO(export(atlas, "picture", "Weights as npy, exact")), allow_pickle=False)
    assert weights.shape == (16, 16)
    assert np.allclose(weights.sum(axis=1), 1, atol=1e-5)
    for menu, item in (("picture", "Matrix as PNG"), ("overview", "Picture as PNG")):
        assert export(atlas, menu, item).startswith(b"\x89PNG")


def test_the_pair_can_be_taken_along(atlas: Atlas) -> None:
    rows = list(csv.reader(io.StringIO(export(atlas, "pair", "Numbers as CSV").decode("utf-8-sig"))))
    assert rows[0] == ["component", "q", "k", "product", "v"]
    assert sum(float(row[3]) for row in rows[1:]) == pytest.approx(21.6876, abs=1e-3)
