"""docs/families.md lists what the readers read, no more and no less."""

import re
from pathlib import Path

from model.checkpoints.reader import FAMILIES, GGUF_ARCHITECTURES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "families.md").read_text("utf-8")
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_every_family_is_listed_once_in_order():
    table = PAGE.split("| `model_type` |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == sorted(FAMILIES)


def test_the_architectures_of_gguf_are_named():
    (row,) = re.findall(r"^\| GGUF \| (.*?) \|", PAGE, re.MULTILINE)
    named = re.findall(r"`([\w-]+)`", row.split(";")[0])
    assert named == sorted(GGUF_ARCHITECTURES)


def test_the_way_to_add_a_family_names_files_that_are_there():
    text = GUIDE.split("## Add a model family")[1].split("\n## ")[0]
    paths = [path for path in re.findall(r"`([\w/]+\.\w+)`", text) if "<" not in path]
    assert len(paths) >= 4
    for path in paths:
        assert (ROOT / path).is_file(), path


def test_a_family_is_a_file_of_at_most_150_lines():
    modules = {read.__module__ for read in FAMILIES.values()}
    for module in modules:
        file = ROOT / f"{module.replace('.', '/')}.py"
        assert len(file.read_text("utf-8").splitlines()) <= 150, file.name
