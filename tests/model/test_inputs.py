import torch

from model.inputs import Inputs


def test_one_sequence_is_a_batch_of_one() -> None:
    inputs = Inputs.of([5, 6, 7], [0, 0, 1])
    assert inputs.ids.tolist() == [[5, 6, 7]]
    assert inputs.segments is not None
    assert inputs.segments.tolist() == [[0, 0, 1]]
    assert inputs.tokens == 3
    assert inputs.positions.tolist() == [[0, 1, 2]]
    assert Inputs.of([5]).segments is None


def test_padding_moves_nobody() -> None:
    real = torch.tensor([[False, False, True, True], [True, True, True, False]])
    assert Inputs(torch.zeros(2, 4), real=real).positions[real].tolist() == [0, 1, 0, 1, 2]
    assert Inputs(torch.zeros(2, 4), real=real).positions.min() == 0
