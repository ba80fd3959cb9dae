"""T5's buckets against the rule, by hand for the published sizes and in whole numbers for others."""

import pytest
import torch
from pydantic import ValidationError

from model.bias import RelativeBias
from model.errors import InputError
from model.labs.bench import Bench
from model.labs.parameters.alibi import T5Buckets
from model.labs.t5_buckets import exact_bucket, run


@pytest.mark.parametrize(
    ("offset", "bucket"),
    # 16 buckets a direction: 8 exact, then edges at 8 · 16^(step/8): 8, 11.3, 16, 22.6, 32 … 90.5.
    [
        (0, 0),
        (-7, 7),
        (-8, 8),
        (-11, 8),
        (-12, 9),
        (-20, 10),
        (-23, 11),
        (-91, 15),
        (-5000, 15),
        (1, 17),
        (12, 25),
        (5000, 31),
    ],
)
def test_buckets_of_the_published_encoder(offset: int, bucket: int) -> None:
    parameters = T5Buckets(buckets=32, max_distance=128, both_ways=True)
    assert exact_bucket(parameters, offset) == bucket
    if abs(offset) < 2048:
        assert run(parameters.model_copy(update={"distance": offset}), Bench()).facts["bucket"] == bucket


@pytest.mark.parametrize("offset", [1, 5, 900])
def test_a_decoder_has_one_bucket_for_all_that_lies_ahead(offset: int) -> None:
    assert exact_bucket(T5Buckets(both_ways=False), offset) == 0


@pytest.mark.parametrize(
    "given",
    [
        {}, {"both_ways": False}, {"length": 1}, {"buckets": 4, "max_distance": 2},
        {"both_ways": False, "buckets": 4, "max_distance": 3},
        {"buckets": 240, "max_distance": 2125, "both_ways": False, "length": 2048},
        {"buckets": 256, "max_distance": 4096, "length": 2048},
    ],
)  # fmt: skip
def test_every_check_holds(given: dict[str, object]) -> None:
    result = run(T5Buckets.model_validate(given), Bench())
    assert [check.name for check in result.checks if not check.holds] == []


def test_a_wrong_bucket_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = RelativeBias.bucket
    monkeypatch.setattr(RelativeBias, "bucket", lambda self, offset: real(self, offset * 3))
    assert not all(check.holds for check in run(T5Buckets(), Bench()).checks)


@pytest.mark.parametrize("distance", [3, 12, 16, 40])
def test_one_distance_in_the_neighbouring_bucket_is_noticed(
    monkeypatch: pytest.MonkeyPatch, distance: int
) -> None:
    real = RelativeBias.bucket
    monkeypatch.setattr(
        RelativeBias, "bucket", lambda self, offset: real(self, offset) - (offset == -distance).int()
    )
    failed = [check.measured for check in run(T5Buckets(), Bench()).checks if not check.holds]
    assert failed == [1.0]


@pytest.mark.parametrize("buckets", [-3, 0, 2, 3])
def test_every_number_of_buckets_that_is_too_small_gets_the_same_sentence(buckets: int) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 4 "):
        T5Buckets(buckets=buckets)


def test_the_sentence_names_who_shares_a_bucket() -> None:
    shared = {d: run(T5Buckets(distance=d), Bench()).facts["shared"] for d in (-3, -20, -100, 300)}
    assert shared == {-3: "−3 alone", -20: "−22 to −16", -100: "−91 and all beyond", 300: "91 and all beyond"}


@pytest.mark.parametrize("distance", [0, 5])
def test_a_decoder_shares_one_bucket_for_itself_and_all_ahead(distance: int) -> None:
    facts = run(T5Buckets(both_ways=False, distance=distance), Bench()).facts
    assert (facts["bucket"], facts["shared"]) == (0, "the token itself and all keys ahead")


@pytest.mark.parametrize("given", [{"buckets": 7}, {"buckets": 256, "max_distance": 64}])
def test_buckets_that_leave_no_room_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(InputError):
        run(T5Buckets.model_validate(given), Bench())


def test_buckets_never_fall_with_distance() -> None:
    found = torch.tensor([exact_bucket(T5Buckets(buckets=40, max_distance=333), -d) for d in range(600)])
    assert (found.diff() >= 0).all()
