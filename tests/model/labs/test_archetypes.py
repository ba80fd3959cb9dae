from dataclasses import replace
from itertools import product

import pytest
import torch
from pydantic import ValidationError

from model.labs import archetypes
from model.labs.bench import Bench
from model.labs.miniature import arrived, miniature
from model.labs.parameters.families import Archetypes
from model.labs.published import published
from model.labs.stated import read_config
from model.rules import Bidirectional, Causal


def run(**values):
    result = archetypes.run(Archetypes(**values), Bench())
    return (
        result,
        {one.id: one.values for one in result.series},
        {check.name: check for check in result.checks},
    )


def test_masks_are_full_and_lower_triangular():
    _, series, _ = run(tokens=7, source=5)
    assert torch.equal(series["mask-encoder"], torch.ones(7, 7, dtype=torch.float64))
    # What is closed holds no number, and is a gap in the picture.
    assert torch.equal(series["mask-decoder"] == 1, torch.ones(7, 7).tril().bool())
    assert torch.equal(series["mask-decoder"].isnan(), torch.ones(7, 7).triu(1).bool())
    assert torch.equal(series["mask-cross"], torch.ones(7, 5, dtype=torch.float64))


def test_scores_above_the_diagonal_are_minus_infinity():
    _, series, checks = run(tokens=6)
    assert torch.equal(series["scores"].isinf(), torch.ones(6, 6).triu(1).bool())
    assert checks["largest weight on a later token"].measured == 0


def test_a_single_token_has_no_later_one_to_leak_to():
    _, _, checks = run(tokens=1)
    assert "largest weight on a later token" not in checks


def _opened(config):
    """A configuration whose decoder forgot its mask."""
    return replace(config, stack=replace(config.stack, mask=Bidirectional()))


def test_the_pictures_do_not_hold_without_the_mask(monkeypatch):
    own = archetypes.miniature
    monkeypatch.setattr(archetypes, "miniature", lambda config, seed: own(_opened(config), seed))
    _, series, checks = run(tokens=6)
    failing = {name for name, check in checks.items() if not check.holds}
    assert failing == {f"{name}: pairs where a change arrived" for name in ("decoder", "target")}
    assert checks["decoder: pairs where a change arrived"].measured == 36
    assert not series["reached-decoder"].isnan().any()


def test_a_mask_that_is_drawn_wrong_does_not_hold(monkeypatch):
    monkeypatch.setattr(archetypes, "allowed", lambda _, rows, keys: torch.ones(len(rows), len(keys)).bool())
    _, _, checks = run(tokens=6)
    failing = [name for name, check in checks.items() if not check.holds]
    assert failing == ["decoder: open pairs of query and key"]


def test_what_reaches_what_follows_the_masks():
    _, series, checks = run(tokens=6, source=9)
    assert ((series["reached-decoder"] > 1e-9) == torch.ones(6, 6).tril().bool()).all()
    assert (series["reached-encoder"] > 1e-9).all()
    assert (series["reached-cross"] > 1e-9).all()
    assert checks["decoder: pairs where a change arrived"].measured == 21
    assert checks["cross: pairs where a change arrived"].measured == 54
    assert all(check.holds for check in checks.values())


@pytest.mark.parametrize(
    ("encoder", "decoder", "both"),
    list(product(["distilbert", "roberta-base"], ["llama3-8b", "mistral-7b"], ["t5-base", "whisper-small"])),
)
def test_every_choice_holds_at_the_largest_and_at_the_smallest(encoder, decoder, both):
    for size in (1, 32):
        result, _, checks = run(
            encoder_only=encoder, decoder_only=decoder, encoder_decoder=both, tokens=size, source=size, seed=3
        )
        assert [name for name, check in checks.items() if not check.holds] == []
        assert result.facts["forbidden_pairs"] == size * (size - 1) // 2


def test_a_decoder_without_its_mask_leaks():
    """What the checks would find, were the mask not there: the measurement does not know it."""
    config = read_config(published().models["gpt2"].config).config
    for mask, pairs in ((Causal(), 15), (Bidirectional(), 25)):
        stack = config.stack.__class__(**{**vars(config.stack), "mask": mask})
        model = miniature(config.__class__(**{**vars(config), "stack": stack}), 0)
        assert (arrived(model, 5, 0, 0).own > 1e-9).sum() == pairs


def test_the_window_that_is_longer_than_the_text_is_said():
    result, _, _ = run(decoder_only="mistral-7b")
    assert any("4,096" in note for note in result.notes)


def test_drawings_are_of_the_real_configurations():
    result, _, _ = run(encoder_decoder="whisper-tiny", decoder_only="gpt3")
    encoder, decoder, both = result.facts["archetypes"]
    assert [stack["layers"] for stack in encoder["stacks"]] == [12]
    assert decoder["stacks"][0]["mask"] == "causal"
    assert decoder["stacks"][0]["layers"] == 96
    assert [(stack["stack"], stack["cross"]) for stack in both["stacks"]] == [
        ("encoder", False),
        ("decoder", True),
    ]
    assert (encoder["reads"], both["reads"]) == ("text", "sound")


@pytest.mark.parametrize(
    "values", [{"tokens": 0}, {"tokens": 33}, {"source": 0}, {"decoder_only": "bert-base"}]
)
def test_what_cannot_be_asked_is_refused(values):
    with pytest.raises(ValidationError):
        Archetypes(**values)
