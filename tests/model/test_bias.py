"""Position biases against the papers, by hand: one pair at a time, in plain Python."""

import math

import pytest
import torch

from model.bias import Alibi, RelativeBias, alibi_slopes


def test_the_slopes_of_eight_heads_are_powers_of_one_half() -> None:
    assert alibi_slopes(8) == tuple(2.0**-n for n in range(1, 9))


def test_the_slopes_of_sixteen_heads_halve_every_other_head() -> None:
    assert alibi_slopes(16) == pytest.approx([2 ** (-n / 2) for n in range(1, 17)])


@pytest.mark.parametrize("heads", [1, 3, 5, 6, 12, 20])
def test_other_numbers_of_heads_take_every_other_slope_of_the_next_power(heads: int) -> None:
    below = 1
    while 2 * below <= heads:
        below *= 2
    more = [2 ** (-8 * n / (2 * below)) for n in range(1, 2 * below + 1, 2)]
    expected = [2 ** (-8 * n / below) for n in range(1, below + 1)] + more[: heads - below]
    assert list(alibi_slopes(heads)) == pytest.approx(expected)
    assert len(set(alibi_slopes(heads))) == heads


def test_alibi_grows_with_distance_alone() -> None:
    bias = Alibi(alibi_slopes(4)).at(range(1, 3), torch.tensor([5, 9]), torch.tensor([4, 5, 11]))
    slopes = [2.0**-4, 2.0**-6]
    expected = [[[-slope * abs(i - j) for j in (4, 5, 11)] for i in (5, 9)] for slope in slopes]
    assert bias.tolist() == expected


def _bucket(offset: int, buckets: int, longest: int, *, both_ways: bool) -> int:
    """The bucket of key - query, as section 2.1 of Raffel et al. 2020 and the authors' code describe it."""
    first = 0
    if both_ways:
        buckets //= 2
        first = buckets if offset > 0 else 0
        distance = abs(offset)
    else:
        distance = max(-offset, 0)
    exact = buckets // 2
    if distance < exact:
        return first + distance
    steps = math.log(distance / exact) / math.log(longest / exact) * (buckets - exact)
    # Where a distance falls on an edge, fp32 decides as it did when the models were trained.
    return first + min(exact + int(steps + 1e-6), buckets - 1)


@pytest.mark.parametrize("both_ways", [True, False])
@pytest.mark.parametrize(("buckets", "longest"), [(32, 128), (12, 30), (6, 7), (8, 100)])
def test_buckets_are_those_of_the_paper(buckets: int, longest: int, both_ways: bool) -> None:
    bias = RelativeBias(2, buckets, longest, both_ways=both_ways)
    offsets = list(range(-300, 301))
    found = bias.bucket(torch.tensor(offsets)).tolist()
    assert found == [_bucket(offset, buckets, longest, both_ways=both_ways) for offset in offsets]
    assert set(found) == set(range(buckets)) - ({buckets // 2} if both_ways else set())


def test_t5s_thresholds() -> None:
    """With 32 buckets both ways distances are exact below 8 and alike from 128 on; one way below 16."""
    both, one = (RelativeBias(1, 32, 128, both_ways=choice) for choice in (True, False))
    back = both.bucket(-torch.arange(200)).tolist()
    assert back[:8] == list(range(8))
    assert back[8] == back[9] == 8
    assert set(back[128:]) == {15}
    assert both.bucket(torch.arange(1, 200)).tolist() == [16 + bucket for bucket in back[1:]]
    past = one.bucket(-torch.arange(200)).tolist()
    assert past[:16] == list(range(16))
    assert set(past[128:]) == {31}
    assert set(one.bucket(torch.arange(200)).tolist()) == {0}


def test_each_head_and_pair_reads_its_bucket() -> None:
    bias = RelativeBias(3, 8, 20, both_ways=True)
    bias.table.data = torch.arange(24.0).view(8, 3)
    found = bias.at(range(1, 3), torch.tensor([0, 6]), torch.tensor([2, 3, 30]))
    for h, head in enumerate((1, 2)):
        for i, query in enumerate((0, 6)):
            for j, key in enumerate((2, 3, 30)):
                assert found[h, i, j] == 3 * _bucket(key - query, 8, 20, both_ways=True) + head
