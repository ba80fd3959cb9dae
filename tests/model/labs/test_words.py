"""Counts, times, places and names in sentences, for none, one and many; and that no lab shows a raw word."""

import re
from typing import get_args

import pytest

from model.config import Activation
from model.labs.bench import Bench
from model.labs.cards import Card
from model.labs.catalogue import LABS
from model.labs.families import card
from model.labs.parameters.families import Families
from model.labs.parameters.positions import Positions
from model.labs.parameters.recurrence import Gradients, Paths
from model.labs.published import published
from model.labs.words import ACTIVATION_NAMES, counted, listed, often, one_of, power, signed, span


def test_counts() -> None:
    assert [counted(n, "token") for n in (0, 1, 2, 1024)] == [
        "0 tokens",
        "1 token",
        "2 tokens",
        "1,024 tokens",
    ]
    assert [counted(n, "step") for n in (-1, -2)] == ["−1 step", "−2 steps"]
    assert counted(2, "word or sign", "words or signs") == "2 words or signs"
    assert [often(n) for n in (0, 1, 3)] == ["0 times", "once", "3 times"]
    assert [span(n) for n in (1, 2)] == ["0 alone", "0 to 1"]
    assert [one_of(n) for n in (1, 12)] == ["choose 0, the only one", "choose one from 0 to 11"]
    assert [listed(list(names)) for names in ("", "A", "AB", "ABC")] == ["", "A", "A and B", "A, B and C"]
    assert signed(-1024) == "−1,024"
    assert [power(x) for x in (6e10, 1e-12)] == ["6.0 · 10¹⁰", "1.0 · 10⁻¹²"]


def test_every_activation_has_a_name() -> None:
    assert set(ACTIVATION_NAMES) == set(get_args(Activation))


@pytest.mark.parametrize("name", sorted(published().models))
def test_no_card_shows_a_raw_word_or_says_the_tied_head_twice(name: str) -> None:
    one = card(name, 64, "float32")
    facts = one.facts()
    assert not re.search(r"\w_\w", str([stack["activation"] for stack in facts["stacks"]]))  # type: ignore[attr-defined]
    assert _says_head(one) == int(one.config.head is not None and one.config.head.tied)
    assert not any("token embedding" in note for note in one.notes())


def _says_head(one: Card) -> int:
    parts = one.facts()["parts"]
    return sum("also the output matrix" in row["part"] for row in parts)  # type: ignore[attr-defined]


def test_gpt2s_activation_is_named_as_readers_know_it() -> None:
    assert card("gpt2", 64, "float32").facts()["stacks"][0]["activation"] == "GELU (tanh)"  # type: ignore[index]
    lab = LABS["families"]
    assert "gelu_tanh" not in str(lab.run(Families(family="gpt2"), Bench()).as_json())


_PLURAL = re.compile(
    r"(?<![\d.,])1 (?:\w+ )?(tokens|words|times|steps|nets|keys|hops|positions|layers|heads)\b"
)


@pytest.mark.parametrize(
    ("lab", "parameters"),
    [
        ("gradients", Gradients(seeds=1, distance=4, width=8)),
        ("positions", Positions(d_model=2, offset=1)),
        ("positions", Positions(d_model=2, position=1, offset=-1)),
        ("paths", Paths(length=2, source=1, target=0)),
    ],
)
def test_ones_are_no_plurals(lab: str, parameters: object) -> None:
    found = LABS[lab].run(parameters, Bench()).as_json()  # type: ignore[arg-type]
    words = [series["title"] for series in found["series"]] + found["notes"]  # type: ignore[index,operator,attr-defined]
    words += [line["name"] for series in found["series"] for line in series.get("lines", [])]  # type: ignore[attr-defined]
    assert words
    assert not [text for text in words if _PLURAL.search(text) or re.search(r"(?<!\w)-\d", text)]


def test_ways_are_said_in_words() -> None:
    ways = LABS["paths"].run(Paths(length=8, source=3, target=2), Bench()).facts["ways"]
    assert ways["self_attention"] == "1 hop"  # type: ignore[index]
    assert ways["recurrent"] == "no way"  # type: ignore[index]
