import pytest

from model.masks import allowed, sees_ahead
from model.rules import AllOf, Anticausal, Bidirectional, Blocked, Causal, Custom, MaskRule, Prefix, Window

RULES: list[MaskRule] = [
    *(
        Bidirectional(),
        Causal(),
        Anticausal(),
        Prefix(0),
        Prefix(4),
        Window(2, 0),
        Window(0, 1),
        Window(9, 9),
    ),
    *(Custom(((True,) * 6,) * 6), Blocked(frozenset({(0, 1)}))),
    *(
        AllOf((Causal(), Blocked(frozenset({(3, 1)})))),
        AllOf((Window(2, 2), Causal())),
        AllOf((Window(1, 1),)),
    ),
]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_that_shows_later_keys_is_never_taken_for_one_that_does_not(rule: MaskRule) -> None:
    shows = allowed(rule, range(6), range(6)).triu(1).any().item()
    assert sees_ahead(rule) or not shows


def test_rules_that_do_not_are_known() -> None:
    assert not any(map(sees_ahead, (Causal(), Window(2, 0), AllOf((Causal(), Blocked(frozenset({(3, 1)})))))))
