"""A lab's answer in a terminal: everything that was found, in columns and one form for each check."""

import pytest
import torch
from typer.testing import CliRunner

from app.cli import app
from app.lab_words import in_words
from model.labs.catalogue import LABS
from model.labs.result import Axis, Chart, Check, Heatmap, Line, Result

CHECKS = [
    Check("small", 0.0, 2.11597e-07, 1e-6, "<="),
    Check("large", 175e9, 174604259328, 5e9, origin="published"),
    Check("least", 0.5, 0.25, relation=">="),
    Check("nothing", 1.0, float("nan")),
]


def told(result: Result) -> list[str]:
    return in_words({**result.as_json()}).splitlines()


def test_each_check_says_what_was_measured_and_what_expected_within_what() -> None:
    assert told(Result(checks=CHECKS))[:4] == [
        " holds  small: measured 2.11597e-07, expected at most 0 ± 1e-06 (theory)",
        " holds  large: measured 174604259328, expected 175000000000 ± 5000000000 (published)",
        " FAILS  least: measured 0.25, expected at least 0.5 (theory)",
        " FAILS  nothing: measured no number, expected 1 (theory)",
    ]


def test_facts_are_told_however_deep_and_tables_in_columns() -> None:
    rows = [{"head": "L3H1", "weight": 0.5, "word": None}, {"head": "L10H11", "weight": 0.125}]
    facts = {
        "a": {"b": {"c": 1.5}, "rows": rows},
        "none": None,
        "on": True,
        "list": list(range(10)),
        "word": "x\ny",
    }
    assert told(Result(facts=facts))[:-1] == [
        "a.b.c: 1.5",
        "a.rows:",
        "  head    weight  word",
        "  L3H1       0.5  none",
        "  L10H11   0.125",
        "none: none",
        "on: yes",
        "list: 0, 1, 2, 3, 4, 5, 6, 7 … and 2 more",
        "word: x ⏎ y",
    ]


def test_of_a_long_table_it_says_how_many_rows_more_there_are() -> None:
    lines = told(Result(facts={"t": [{"n": n} for n in range(40)]}))
    assert lines[:3] == ["t:", "   n", "   0"]
    assert lines[-2] == "  … and 28 more rows"


def test_each_series_is_one_line_with_its_range_and_size() -> None:
    line = Chart("c", "Loss", Axis("step"), Axis("nats"), [Line("l", [0, 1, 2], [3.0, float("nan"), 1.0])])
    bars = Chart("b", "Words", Axis("word"), Axis("weight"), [Line("l", ["it", "a"], [0.5, 0.25])], "bars")
    matrix = Heatmap(
        "m", "Map", Axis("x"), Axis("y"), [0, 1, 2], [0, 1], torch.arange(6.0).view(2, 3), "weight"
    )
    assert told(Result([line, bars, matrix]))[:3] == [
        "[c] Loss: 1 line, 3 points; step from 0 to 2; nats from 1 to 3",
        "[b] Words: 1 line, 2 points; weight from 0.25 to 0.5",
        "[m] Map: 2 × 3, weight from 0 to 5",
    ]


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["lab", *arguments], terminal_width=200)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", list(LABS))
def test_the_help_of_every_lab_tells_its_options_apart_with_bounds_and_choices(name: str) -> None:
    properties = LABS[name].parameters.model_json_schema()["properties"]
    text = " ".join(run(name, "--help").split())
    for option, schema in properties.items():
        assert f"--{option.replace('_', '-')}" in text
        if "minimum" in schema and "maximum" in schema:
            assert f"[{schema['minimum']} to {schema['maximum']}]".replace(".0", "") in text.replace(".0", "")
        if "enum" in schema:
            assert "|".join(schema["enum"]) in text
    about = [schema["description"] for schema in properties.values()]
    assert len(set(about)) == len(about)


def test_a_flag_is_switched_on_and_off_by_name() -> None:
    assert "looking both ways" not in run("t5-buckets", "--no-both-ways")
    assert run("t5-buckets", "--both-ways") == run("t5-buckets") != run("t5-buckets", "--no-both-ways")


def test_a_configuration_is_read_from_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "gpt2", "n_layer": 3}', "utf-8")
    assert "gpt2" in run("config", "--file", str(file))
    refused = CliRunner().invoke(app, ["lab", "config", "--file", str(tmp_path / "none.json")])
    assert refused.exit_code == 1
    assert "none.json cannot be read (No such file or directory): name a text file." in refused.output
