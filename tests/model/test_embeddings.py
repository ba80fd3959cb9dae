import torch
from torch import Tensor

from model.config import EmbeddingConfig, LayerNorm, Learned, NoPosition
from model.embeddings import Embeddings


def _on(built: Embeddings, ids: list[int], segments: list[int] | None = None) -> Tensor:
    rows = None if segments is None else torch.tensor([segments])
    return built(torch.tensor([ids]), rows, torch.arange(len(ids))[None])[0]


def test_token_segment_and_position_are_added_and_normed() -> None:
    built = Embeddings(EmbeddingConfig(9, 3, LayerNorm(0.1)), 6, Learned(8, 0)).requires_grad_(
        requires_grad=False
    )
    assert built.segments is not None
    assert built.positions is not None
    ids, segments = [4, 4, 7], [0, 2, 1]
    total = built.tokens.weight[ids] + built.segments.weight[segments] + built.positions.weight[:3]
    expected = torch.nn.functional.layer_norm(total, (6,), eps=0.1)
    torch.testing.assert_close(_on(built, ids, segments), expected)


def test_without_segments_all_are_the_first() -> None:
    built = Embeddings(EmbeddingConfig(9, 2, None), 6, NoPosition(8)).requires_grad_(requires_grad=False)
    assert torch.equal(_on(built, [1, 2]), _on(built, [1, 2], [0, 0]))


def test_a_model_may_embed_tokens_alone() -> None:
    built = Embeddings(EmbeddingConfig(9, None, None), 6, NoPosition(8)).requires_grad_(requires_grad=False)
    assert torch.equal(_on(built, [3, 1]), built.tokens.weight[[3, 1]])
    assert {name for name, _ in built.named_parameters()} == {"tokens.weight"}
