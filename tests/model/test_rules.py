import math

import pytest

from model.rules import (
    AllOf,
    Anticausal,
    Bidirectional,
    Blocked,
    Causal,
    Custom,
    MaskRule,
    Prefix,
    ScoreRule,
    Window,
    mask_in_words,
    scale_in_words,
)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Bidirectional(), "bidirectional"),
        (Causal(), "causal"),
        (Anticausal(), "anticausal"),
        (Window(4, 0), "window 4 back, 0 ahead"),
        (Prefix(5), "prefix of 5"),
        (Custom(((True,),)), "custom"),
        (AllOf((Causal(), Blocked(frozenset({(3, 1), (2, 0)})))), "causal, blocked 2 → 0, 3 → 1"),
    ],
)
def test_masks_have_words(rule: MaskRule, words: str) -> None:
    assert mask_in_words(rule) == words


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (32**-0.5, "1/√32"),
        (1 / math.sqrt(32), "1/√32"),
        (1 / 32, "1/32"),
        (1.0, "1"),
        (0.25, "0.25"),
        (-2.0, "-2"),
    ],
)
def test_scales_have_words(scale: float, words: str) -> None:
    assert scale_in_words(scale, 32) == words


def test_shared_is_what_all_heads_share() -> None:
    same = ScoreRule((0.5, 0.5), (Causal(), Causal()))
    assert (same.heads, same.shared_scale, same.shared_mask) == (2, 0.5, Causal())
    differing = ScoreRule((0.5, 0.4), (Causal(), Prefix(1)))
    assert (differing.shared_scale, differing.shared_mask) == (None, None)
