"""Word order on real models, with and without positions; and by what a causal mask gives it away."""

import numpy as np
import pytest
import torch

from model.errors import InputError
from model.labs.bench import Bench
from model.labs.mask_order import run as run_mask_order
from model.labs.order import run
from model.labs.order_runs import Setting
from model.labs.parameters.order import MaskOrder, Order
from model.labs.result import Check, Result


def _check(result: Result, name: str) -> Check:
    return next(check for check in result.checks if check.name.startswith(name))


@pytest.mark.weights
def test_without_positions_dog_bites_man_is_man_bites_dog(real_bench: Bench) -> None:
    result = run(Order(), real_bench)
    blind = _check(result, "positions off, bidirectional")
    assert blind.tolerance <= 1e-5
    assert blind.holds
    assert blind.measured == float(result.facts["largest"])  # type: ignore[arg-type]
    assert float(result.facts["largest"]) <= 1e-5  # type: ignore[arg-type]
    assert float(result.facts["cosine"]) == pytest.approx(1, abs=1e-12)  # type: ignore[arg-type]
    assert all(check.holds for check in result.checks)


@pytest.mark.weights
@pytest.mark.parametrize(
    ("positions", "mask"), [("on", "own"), ("shuffled", "own"), ("off", "causal"), ("on", "causal")]
)
def test_order_is_seen_with_positions_or_a_causal_mask(real_bench: Bench, positions: str, mask: str) -> None:
    result = run(Order.model_validate({"positions": positions, "mask": mask}), real_bench)
    assert float(result.facts["largest"]) > 0.1  # type: ignore[arg-type]
    assert positions in str(result.facts["setting"])


@pytest.mark.weights
def test_the_models_own_outputs_are_compared_token_by_token(real_bench: Bench) -> None:
    """The same with the model itself: token 1 of one text is token 3 of the other."""
    loaded = real_bench.model("minilm")
    assert loaded.encoder is not None
    ids = [loaded.encoder.encode(text).ids for text in ("dog bites man", "man bites dog")]
    assert [ids[0][i] for i in (0, 3, 2, 1, 4)] == ids[1]
    from model.inputs import Inputs

    with torch.inference_mode():
        a, b = (loaded.transformer(Inputs.of(one, [0] * 5))[0].numpy() for one in ids)
    expected = np.abs(a - b[[0, 3, 2, 1, 4]]).max()
    given = Order(text="dog bites man", other="man bites dog", positions="on")
    assert float(run(given, real_bench).facts["largest"]) == pytest.approx(expected, abs=1e-4)  # type: ignore[arg-type]


@pytest.mark.weights
def test_the_check_fails_where_positions_stay(real_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Setting, "plan", lambda *_: [])
    assert not _check(run(Order(), real_bench), "positions off, bidirectional").holds


@pytest.mark.weights
def test_the_checks_of_order_fail_where_the_model_is_blind(
    real_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = Setting("off", "bidirectional").plan(0)
    monkeypatch.setattr(Setting, "plan", lambda *_: blind)
    result = run(Order(positions="shuffled"), real_bench)
    assert sum(not check.holds for check in result.checks) == 3


@pytest.mark.weights
@pytest.mark.parametrize(
    ("model", "texts"),
    [
        ("smollm2", {}),
        ("smollm2", {"text": "if he said no then she said yes", "other": "if she said no then he said yes"}),
        ("minilm", {"text": "word word word word word cat", "other": "word word cat word word word"}),
    ],
)
def test_ordinary_texts_hold_on_both_models(real_bench: Bench, model: str, texts: dict[str, str]) -> None:
    """On smollm2 fp32 leaves 3e-4 of the differences that are zero."""
    result = run(Order.model_validate({"model": model, **texts}), real_bench)
    assert [check.name for check in result.checks if not check.holds] == []
    assert len(result.checks) == 3
    assert _check(result, "positions off, bidirectional").measured < 1e-10


@pytest.mark.weights
def test_what_is_chosen_is_checked_beside_what_is_fixed(real_bench: Bench) -> None:
    result = run(Order(positions="shuffled", mask="causal"), real_bench)
    names = [check.name for check in result.checks]
    assert names[-1] == "positions shuffled, causal mask: largest difference"
    assert len(names) == 4
    assert result.facts["moved"] == "“dog” and “man”"
    assert any("[CLS]” and “the” at the start" in note for note in result.notes)


@pytest.mark.weights
@pytest.mark.parametrize("other", ["Man bites", "Man bites cat", "dog bites man man"])
def test_other_words_are_refused_by_name(real_bench: Bench, other: str) -> None:
    with pytest.raises(InputError, match=r"token “(dog|man|cat)” stands more often in the (first|second)"):
        run(Order(text="Dog bites man", other=other), real_bench)


@pytest.mark.weights
def test_a_capital_that_makes_another_token_is_explained(real_bench: Bench) -> None:
    with pytest.raises(InputError, match="A capital or a space before a word can make it another token"):
        run(Order(model="smollm2", text="Dog bites man", other="Man bites dog"), real_bench)


@pytest.mark.weights
def test_the_same_order_is_said_and_nothing_claimed(real_bench: Bench) -> None:
    result = run(Order(text="Dog", other="dog"), real_bench)
    assert result.checks == []
    assert (result.facts["same"], result.facts["differ"]) == (True, False)


@pytest.mark.weights
def test_repeated_words_are_matched_in_turn(real_bench: Bench) -> None:
    result = run(Order(text="the cat sees the dog", other="the dog sees the cat"), real_bench)
    assert all(check.holds for check in result.checks)


@pytest.mark.weights
def test_a_decoder_is_blind_to_order_too_once_its_mask_is_gone(real_bench: Bench) -> None:
    result = run(Order(model="smollm2", text="a b c", other="a c b", positions="off", mask="own"), real_bench)
    assert _check(result, "positions off, bidirectional").holds
    assert result.facts["setting"] == "positions off, causal mask"
    assert float(result.facts["largest"]) > 1e-3  # type: ignore[arg-type]


@pytest.mark.weights
@pytest.mark.parametrize("given", [{}, {"word": "tree", "repeats": 2, "head": 11}, {"repeats": 200}])
def test_the_share_of_the_first_token_is_a_clock_under_a_causal_mask(
    real_bench: Bench, given: dict[str, object]
) -> None:
    result = run_mask_order(MaskOrder.model_validate(given), real_bench)
    assert [check.name for check in result.checks if not check.holds] == []
    facts = result.facts
    assert facts["first_token"] == "[CLS]"
    assert float(facts["first_share"]) > float(facts["last_share"])  # type: ignore[arg-type]
    assert float(facts["causal_difference"]) > 1e-3  # type: ignore[arg-type]
    assert float(facts["bidirectional_difference"]) <= 1e-5  # type: ignore[arg-type]


@pytest.mark.weights
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"head": 12}, "heads 0 to 11"),
        ({"word": "antidisestablishmentarianism"}, "more than one token"),
        ({"model": "smollm2"}, "choose minilm"),
        ({"word": "dog dog"}, "one common word"),
    ],
)
def test_what_cannot_be_repeated_is_refused(real_bench: Bench, given: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_mask_order(MaskOrder.model_validate(given), real_bench)
