from collections import Counter

import pytest
import torch

from model.labs.pattern_scores import Seen
from model.labs.probes import RELATIONS, Sentence, read_probes
from model.labs.relations import Link, best_fixed, hits, linked
from model.labs.word_links import Word
from model.words import word_spans

PROBES = read_probes()


def seen(text: str, *, causal: bool = False) -> Seen:
    """A text of which every word is one token, and all look at everything they may."""
    spans = [(start, end) for start, end in word_spans(text) if text[start:end].strip()]
    words = [Word(text[start:end], (place,), special=False) for place, (start, end) in enumerate(spans)]
    opened = torch.ones(len(words), len(words), dtype=torch.bool)
    opened = opened.tril() if causal else opened
    return Seen((opened / opened.sum(1, keepdim=True))[None], opened, range(len(words)), words)


def every(relation: str, *, causal: bool) -> list[Link]:
    return [link for one in PROBES.sentences for link in linked(one, relation, seen(one.text, causal=causal))]


@pytest.mark.parametrize("sentence", PROBES.sentences, ids=lambda one: one.text[:30])
def test_every_linked_word_stands_once_and_is_not_the_first(sentence: Sentence) -> None:
    labels = [word.label.casefold() for word in seen(sentence.text).words]
    named = {
        word for links in sentence.links.values() for looking, right in links for word in {looking, *right}
    }
    assert named
    for word in named:
        assert labels.count(word.casefold()) == 1, word
        assert labels[0] != word.casefold()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("relation", RELATIONS)
def test_no_fixed_rule_comes_near_the_bound_of_a_label(relation: str, causal: bool) -> None:
    links = every(relation, causal=causal)
    assert len(links) >= 15
    assert best_fixed(links)[0] < PROBES.labels[relation].at_least - 0.05


@pytest.mark.parametrize("causal", [False, True])
def test_a_flat_pattern_links_nothing(causal: bool) -> None:
    for relation in RELATIONS:
        rows = [
            hits(probe, linked(one, relation, probe))
            for one in PROBES.sentences
            for probe in [seen(one.text, causal=causal)]
        ]
        assert torch.cat(rows, dim=1).mean() < 0.3


def test_a_mask_turns_a_link_round_and_shortens_a_list() -> None:
    sentence = Sentence(
        "We saw a red house, a barn and a mill.",
        {
            "adjective": [("red", frozenset(["house"]))],
            "list": [
                (item, frozenset({"house", "barn", "mill"} - {item})) for item in ("house", "barn", "mill")
            ],
        },
    )
    free, masked = seen(sentence.text), seen(sentence.text, causal=True)
    (forward,) = linked(sentence, "adjective", free)
    (back,) = linked(sentence, "adjective", masked)
    assert (forward.looking, set(forward.right)) == (3, {4})
    assert (back.looking, set(back.right)) == (4, {3})
    assert [set(link.right) for link in linked(sentence, "list", masked)] == [{4}, {4, 7}]
    assert len(linked(sentence, "list", free)) == 3


def test_a_hit_is_the_largest_weight_among_the_words_that_count() -> None:
    probe = seen("he saw the dog and fed it")
    pattern = torch.zeros(2, 7, 7)
    # The first word and the word itself draw most, and do not count.
    pattern[:, 6, 0], pattern[:, 6, 6] = 0.4, 0.3
    pattern[0, 6, 3], pattern[0, 6, 4] = 0.2, 0.1
    pattern[1, 6, 3], pattern[1, 6, 4] = 0.1, 0.2
    sentence = Sentence("", {"pronoun": [("it", frozenset(["dog"]))]})
    links = linked(sentence, "pronoun", probe)
    assert hits(Seen(pattern, probe.open, probe.ids, probe.words), links).tolist() == [[1], [0]]


def test_the_best_fixed_rule() -> None:
    def link(looking: int, right: int) -> Link:
        return Link(looking, frozenset([right]), frozenset(range(9)))

    assert best_fixed([link(4, 3), link(6, 5), link(8, 2)]) == (pytest.approx(2 / 3), "offset -1")
    assert best_fixed([link(4, 2), link(6, 2), link(8, 2)]) == (1, "place 2")
    assert best_fixed([]) == (0, "none")


def test_the_probe_set_is_whole() -> None:
    assert set(PROBES.labels) >= set(RELATIONS)
    assert Counter(one.text for one in PROBES.sentences).most_common(1)[0][1] == 1
    assert all(0 < rule.at_least < 1 and 0 < rule.beside_at_least < 1 for rule in PROBES.labels.values())
    assert len(set(PROBES.blocks)) > 1
