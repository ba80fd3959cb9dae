"""Ids to vectors: token, segment and position embeddings."""

import torch
from torch import Tensor, nn

from model.config import EmbeddingConfig, Learned, Position, Sinusoidal
from model.linear import Linear
from model.norms import build_norm


class Embeddings(nn.Module):
    """Sum of the token's, its segment's and its position's vector; in some families a norm, a projection."""

    def __init__(self, config: EmbeddingConfig, width: int, position: Position) -> None:
        super().__init__()
        own = config.width or width
        self.scale, self.position = config.scale, position
        self.tokens = nn.Embedding(config.vocabulary, own)
        self.segments = nn.Embedding(config.segments, own) if config.segments else None
        self.positions = nn.Embedding(position.rows, own) if isinstance(position, Learned) else None
        self.norm = build_norm(config.norm, own) if config.norm else None
        self.projection = Linear(own, width) if config.width else None

    def forward(self, ids: Tensor, segments: Tensor | None, places: Tensor | None) -> Tensor:
        """Vectors [B, T, D] of ids [B, T] in segments [B, T] (None: all 0) at places [B, T] (None: none)."""
        x: Tensor = self.tokens(ids)  # [B, T, D]
        if self.scale is not None:
            x = x * self.scale
        if self.segments is not None:
            x = x + (self.segments.weight[0] if segments is None else self.segments(segments))
        if places is not None:
            x = self._add_positions(x, places)
        if self.norm is not None:
            x = self.norm(x)
        out: Tensor = x if self.projection is None else self.projection(x)  # [B, T, D]
        return out

    def _add_positions(self, x: Tensor, places: Tensor) -> Tensor:
        match self.position:
            case Learned(offset=offset) if self.positions is not None:
                table: Tensor = self.positions(places + offset)  # [B, T, D]
                return x + table
            case Sinusoidal(interleaved=interleaved):
                return x + waves(places, x.shape[-1], interleaved=interleaved).to(x.dtype)  # [B, T, D]
            case _:
                return x


def waves(places: Tensor, width: int, *, interleaved: bool, base: float = 10000.0) -> Tensor:
    """Sinusoidal positions [B, T, D]: sin and cos of p / base^(2i/D) (Vaswani et al. 2017, section 3.5).

    Sine and cosine alternate, or all sines come first. Computed in fp64.
    """
    pair = torch.arange(0, width, 2, dtype=torch.float64, device=places.device)  # [D/2]
    angle = places[..., None].double() / base ** (pair / width)  # [B, T, D/2]
    if interleaved:
        return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[..., :width]  # [B, T, D]
    return torch.cat((angle.sin(), angle.cos()), dim=-1)[..., :width]  # [B, T, D]
