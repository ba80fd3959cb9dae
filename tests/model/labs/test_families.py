from typing import get_args

import pytest
from pydantic import ValidationError

from model.labs import card_charts, costs, families
from model.labs.bench import Bench
from model.labs.cards import Card
from model.labs.parameters.families import DecoderOnly, EncoderDecoder, EncoderOnly, Families, Family
from model.labs.published import published, table
from model.labs.stated import read_config

COUNTS = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "distilgpt2": 81_912_576,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "distilbert": 66_362_880,
    "roberta-base": 124_645_632,
    "t5-small": 60_506_624,
}


def run(**values):
    return families.run(Families(**values), Bench())


@pytest.mark.parametrize("name", COUNTS)
def test_published_counts_are_met_exactly(name):
    result = run(family=name)
    assert result.facts["parameters"] == COUNTS[name]
    assert sum(row["parameters"] for row in result.facts["parts"]) == COUNTS[name]
    own = next(check for check in result.checks if check.about == "parts" and check.origin == "published")
    assert (own.expected, own.measured, own.tolerance, own.holds) == (COUNTS[name], COUNTS[name], 0, True)


def test_every_published_count_is_checked_and_holds():
    checks = [check for check in run().checks if check.about == "totals"]
    assert len(checks) == len(published().models) == len(get_args(Family))
    assert all(check.holds for check in checks)
    assert sum(check.tolerance == 0 for check in checks) == len(checks) - 1


def test_a_wrong_layer_more_does_not_hold(monkeypatch):
    models = dict(published().models)
    models["gpt2"] = models["gpt2"].model_copy(update={"config": {**models["gpt2"].config, "n_layer": 13}})
    wrong = published().model_copy(update={"models": models})
    monkeypatch.setattr(families, "published", lambda: wrong)
    assert [check.name for check in run().checks if not check.holds] == [
        "all parts of GPT-2 small",
        "parameters of GPT-2 small",
    ]


def test_gpt3_is_as_large_as_its_paper_says():
    result = run(family="gpt3")
    assert round(result.facts["parameters"] / 1e9) == 175
    (stack,) = result.facts["stacks"]
    assert (stack["layers"], stack["heads"], stack["width"], stack["head width"]) == (96, 96, 12288, 128)
    assert any("sparse" in note for note in result.notes)


def test_the_pooler_of_bert_is_counted_by_its_name():
    parts = {row["part"]: row["parameters"] for row in run(family="bert-base").facts["parts"]}
    assert parts["pooler"] == 768 * 768 + 768
    assert "pooler" not in {row["part"] for row in run(family="distilbert").facts["parts"]}


def test_a_length_changes_what_it_should():
    short, long = run(tokens=512), run(tokens=1024)
    assert long.facts["cache_bytes"] == 2 * short.facts["cache_bytes"]
    assert long.facts["attention_bytes"] == 4 * short.facts["attention_bytes"]
    assert long.facts["parameters"] == short.facts["parameters"]
    weights = run(precision="float32").facts
    assert (weights["weights_bytes"], weights["weights_memory"]) == (124_439_808 * 4, "497.8 MB")


def test_beyond_its_positions_a_model_gets_a_note():
    assert not any("arithmetic only" in note for note in run(tokens=1024).notes)
    assert any("1,024 tokens" in note and "1,025" in note for note in run(tokens=1025).notes)


@pytest.mark.parametrize(
    "values", [{"tokens": 0}, {"tokens": 2**20 + 1}, {"family": "gpt5"}, {"precision": "int4"}]
)
def test_what_cannot_be_asked_is_refused(values):
    with pytest.raises(ValidationError):
        Families(**values)


def test_the_longest_text_is_answered():
    facts = run(tokens=2**20, family="mistral-7b").facts
    assert facts["attention_bytes"] == 32 * 32 * 2**40 * 2
    assert facts["attention_memory"] == "2.252 PB"


def test_a_further_token_adds_nothing_behind_a_full_window():
    short, full = (run(tokens=n, family="mistral-7b").facts for n in (4095, 4096))
    assert (short["cache_bytes_a_token"], full["cache_bytes_a_token"]) == (2 * 32 * 8 * 128 * 2, 0)
    assert "nothing for a further token" in full["cache_memory"]
    assert full["cache_bytes"] == 536_870_912
    assert run(family="bert-base").facts["cache_memory"].startswith("none")


def _doubled(name):
    own = getattr(costs, name)
    return lambda *given: 2 * own(*given)


WRONG = {
    "token_operations": {"operations of the last token", "operations of a small model"},
    "source_operations": {"operations of one position", "operations of a small model"},
    "cache_numbers": {"bytes of keys and values", "keys and values that a small", "bytes that a further"},
    "attention_numbers": {"bytes of attention", "attention weights of a small"},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_cost_does_not_hold(monkeypatch, name):
    monkeypatch.setattr(costs, name, _doubled(name))
    failing = [check.name for check in run(family="whisper-tiny", tokens=100).checks if not check.holds]
    assert len(failing) == len(WRONG[name])
    assert all(any(one.startswith(start) for one in failing) for start in WRONG[name])


@pytest.mark.parametrize("fact", ["weights_bytes", "cache_bytes", "attention_bytes", "token_operations"])
def test_a_wrong_fact_does_not_hold(monkeypatch, fact):
    own = Card.facts
    monkeypatch.setattr(Card, "facts", lambda card: {**own(card), fact: own(card)[fact] + 12_345})
    assert len([check for check in run().checks if not check.holds]) == 1


@pytest.mark.parametrize("unit", ["MB", "GFLOP"])
def test_a_curve_of_other_numbers_does_not_hold(monkeypatch, unit):
    monkeypatch.setattr(card_charts, unit, getattr(card_charts, unit) * 7)
    failing = {check.about for check in run().checks if not check.holds}
    assert failing == {{"MB": "memory", "GFLOP": "operations"}[unit]}


def test_a_size_without_embeddings_that_is_off_does_not_hold(monkeypatch):
    own = Card.without_embeddings.fget
    monkeypatch.setattr(Card, "without_embeddings", property(lambda card: own(card) + 12_345))
    assert [check.name for check in run().checks if not check.holds] == [
        "parameters outside the embeddings, by formula"
    ]


def test_kinds_are_what_their_configurations_say():
    for names, kind in (
        (EncoderOnly, ["encoder"]),
        (DecoderOnly, ["decoder"]),
        (EncoderDecoder, ["encoder", "decoder"]),
    ):
        for name in get_args(names):
            config = read_config(published().models[name].config).config
            assert [stack.name for stack in config.stacks] == kind


def test_closed_models_are_estimates_only():
    result = run()
    assert {row["origin"] for row in result.facts["closed"]} == {"estimate"}
    layers = next(chart for chart in result.series if chart.id == "layers")
    by = {line.name: line for line in layers.lines}
    assert by["press"].origin == "estimate"
    assert dict(zip(by["press"].x, by["press"].y, strict=True)) == {"GPT-4": 120}
    assert "GPT-4" not in by["from the configuration"].x


def test_the_table_is_of_the_configurations():
    rows = {row["model"]: row for row in run().facts["families"]}
    llama = rows["LLaMA 3 8B"]
    assert (llama["heads"], llama["key heads"], llama["vocabulary"]) == (32, 8, 128256)
    assert rows["T5 base"]["layers"] == "12 + 12"
    assert rows["GPT-3 175B"]["most tokens"] == 2048


def test_every_published_figure_has_its_citation():
    for model in published().models.values():
        assert model.paper
        assert model.source
        assert model.counted
    assert all(one.source for one in published().closed.values())
    assert table("scaling_laws")["paper"] == published().scaling_laws.paper


def test_charts_hold_the_card():
    result = run(family="t5-small")
    charts = {chart.id: chart for chart in result.series}
    (parts,) = charts["parts"].lines
    assert sum(parts.y) == COUNTS["t5-small"]
    cache = next(line for line in charts["memory"].lines if line.name.startswith("keys"))
    at = dict(zip(cache.x, cache.y, strict=True))
    # Six layers, self and cross, 512 numbers of key and of value each, two bytes.
    assert at[1024.0] == pytest.approx(2 * 2 * 6 * 512 * 1024 * 2 / 1e6)
