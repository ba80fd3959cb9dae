"""Ids to vectors: token, segment and learned position embeddings."""

from torch import Tensor, nn

from model.config import EmbeddingConfig, Learned, Position
from model.inputs import Inputs
from model.norms import build_norm


class Embeddings(nn.Module):
    """Sum of the token's, its segment's and its position's vector, then a norm where the family has one."""

    def __init__(self, config: EmbeddingConfig, width: int, position: Position) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, width)
        self.segments = nn.Embedding(config.segments, width) if config.segments else None
        self.positions = nn.Embedding(position.rows, width) if isinstance(position, Learned) else None
        self.norm = build_norm(config.norm, width) if config.norm else None

    def forward(self, inputs: Inputs) -> Tensor:
        """Vectors [B, T, D] of the ids."""
        x: Tensor = self.tokens(inputs.ids)  # [B, T, D]
        if self.segments is not None:
            x = x + (self.segments.weight[0] if inputs.segments is None else self.segments(inputs.segments))
        if self.positions is not None:
            x = x + self.positions(inputs.positions)
        return x if self.norm is None else self.norm(x)
