"""Where "Paris" enters: the lens ends at the model's output, the parts add up, what is left out is missed."""

import pytest
import torch

from model.errors import InputError
from model.labs import facts
from model.labs.bench import Bench, Cancelled
from model.labs.parameters.feed_forward import Facts
from model.labs.reading import run_ids, run_text
from model.labs.result import Chart, Result

pytestmark = pytest.mark.weights


@pytest.fixture(scope="module")
def paris(real_bench: Bench) -> Result:
    return facts.run(Facts(), real_bench)


def told_first(bench: Bench, parameters: Facts) -> Result:
    """What the lab tells before it leaves out one layer after the other."""
    told: list[Result] = []

    def leave(_fraction: float, _words: str, so_far: Result | None) -> None:
        if so_far is not None:
            told.append(so_far)
        raise Cancelled

    with pytest.raises(Cancelled):
        facts.run(parameters, Bench(bench.model, leave))
    return told[0]


def line(result: Result, chart: str, name: str) -> list[float]:
    found = next(one for one in result.series if isinstance(one, Chart) and one.id == chart)
    return list(next(line for line in found.lines if line.name == name).y)


def test_the_last_row_is_the_models_own_output(real_bench: Bench, paris: Result) -> None:
    assert all(check.holds for check in paris.checks)
    ran = run_text(real_bench, "smollm2", "The capital of France is")
    own = torch.softmax(real_bench.model("smollm2").transformer.logits(ran.trace.final[None])[0, -1], dim=-1)
    assert paris.facts["answer"] == "␣Paris"
    assert paris.facts["rank"] == 1
    assert paris.facts["p"] == pytest.approx(float(own.max()), rel=1e-4)
    assert line(paris, "rank", "rank")[-1] == 1
    assert line(paris, "probability", "p")[-1] == pytest.approx(float(own.max()), rel=1e-4)


def test_the_answer_is_not_there_from_the_start(paris: Result) -> None:
    ranks = line(paris, "rank", "rank")
    assert len(ranks) == 31
    assert min(ranks[:20]) > 1000
    assert max(ranks[28:]) < 10


def test_the_lens_of_a_middle_layer(real_bench: Bench, paris: Result) -> None:
    ran = run_text(real_bench, "smollm2", "The capital of France is", record=("resid",))
    model = ran.loaded.transformer
    x = ran.trace.resid["decoder", 24][-1]
    normed = x / (x.square().mean() + model.stack.final_norm.eps).sqrt() * model.stack.final_norm.gain
    logits = model.head.projection.weight @ normed
    answer = ran.loaded.encoder.encode("The capital of France is Paris").ids[-1]
    assert line(paris, "rank", "rank")[24] == 1 + int((logits > logits[answer]).sum())


def test_a_part_that_is_forgotten_is_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = facts._parts
    monkeypatch.setattr(facts, "_parts", lambda question: {**own(question), "embedding": [0.0]})
    checks = told_first(real_bench, Facts()).checks
    assert {check.about for check in checks if not check.holds} == {"direct"}


@pytest.mark.parametrize("wrong", ["rank", "shifted"])
def test_a_lens_that_is_wrong_is_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    if wrong == "rank":
        monkeypatch.setattr(facts, "_ranks", lambda _, lens: [1] * len(lens))
    else:
        own = facts._lens
        monkeypatch.setattr(
            facts, "_lens", lambda question, layer: own(question, min(layer + 1, question.layers))
        )
    checks = told_first(real_bench, Facts()).checks
    assert "layers whose rank is another by norm and unembedding's formulas" in {
        check.name for check in checks if not check.holds
    }


def test_shares_of_the_wrong_layers_are_seen(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    own = facts._parts
    monkeypatch.setattr(
        facts, "_parts", lambda question: {**own(question), "attention": own(question)["attention"][::-1]}
    )
    failing = [check.name for check in told_first(real_bench, Facts()).checks if not check.holds]
    assert failing == ["contributions up to each layer = the stream's own logit there, largest difference"]


def test_losses_that_are_not_those_of_a_run_are_seen(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "_lost", lambda question, _: [0.0] * question.layers)
    failing = {check.about for check in facts.run(Facts(), real_bench).checks if not check.holds}
    assert failing == {"causal"}


def test_the_sentence_adds_up(paris: Result) -> None:
    totals = paris.facts["totals"]
    assert isinstance(totals, dict)
    assert sum(totals.values()) == pytest.approx(paris.facts["logit"], abs=1e-2)
    assert paris.facts["biased"] is False


def test_the_feed_forward_layer_that_brings_it(paris: Result) -> None:
    added = line(paris, "direct", "feed-forward")
    assert paris.facts["ffn"]["layer"] == added.index(max(added))
    assert paris.facts["totals"]["feed-forward"] == pytest.approx(sum(added), rel=1e-6)


def test_what_is_lost_is_what_a_run_without_the_layer_loses(real_bench: Bench, paris: Result) -> None:
    loaded = real_bench.model("smollm2")
    encoded = loaded.encoder.encode("The capital of France is", None)
    answer = loaded.encoder.encode("The capital of France is Paris").ids[-1]
    plan: list[dict[str, object]] = [{"kind": "drop_sublayer", "sublayer": "ffn", "sites": "decoder.self.8"}]
    found = []
    for steps in ([], plan):
        logits = run_ids(loaded, encoded, steps, (), [4]).logits[0]
        found.append(float(logits[answer] - logits.mean()))
    assert line(paris, "causal", "feed-forward")[8] == pytest.approx(found[0] - found[1], abs=1e-3)


def test_another_question(real_bench: Bench) -> None:
    result = told_first(real_bench, Facts(prompt="The opposite of hot is", answer="cold"))
    assert result.facts["answer"] == "␣cold"
    assert result.facts["rank"] == 1
    assert all(check.holds for check in result.checks)


def test_a_long_answer_is_followed_by_its_first_token(real_bench: Bench) -> None:
    result = told_first(real_bench, Facts(answer="Parisian pastry"))
    assert any("the first" in note for note in result.notes)


@pytest.mark.parametrize(("changes", "said"), [
    ({"model": "minilm"}, "minilm predicts no next token"),
    ({"prompt": "The capital of France is "}, "end the prompt without a space"),
    ({"prompt": "word " * 600 + "is"}, "takes 64: shorten"),
])  # fmt: skip
def test_what_cannot_be_followed_is_refused(real_bench: Bench, changes: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        facts.run(Facts(**changes), real_bench)  # type: ignore[arg-type]


def test_what_can_be_drawn_comes_first_and_it_stops_when_nobody_waits(real_bench: Bench) -> None:
    told = told_first(real_bench, Facts())
    assert {series.id for series in told.series} == {"rank", "probability", "direct"}
