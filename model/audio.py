"""Sound to vectors: a log-mel spectrogram through two convolutions (Radford et al. 2022, section 2.2)."""

import torch.nn.functional as F
from torch import Tensor, nn

from model.config import AudioConfig, Learned, Position


class AudioFront(nn.Module):
    """GELU(conv of stride 2(GELU(conv mel))) plus positions: mel [B, M, 2S] -> [B, S, D]."""

    def __init__(self, config: AudioConfig, width: int, position: Position) -> None:
        super().__init__()
        self.first = nn.Conv1d(config.mel_bins, width, kernel_size=3, padding=1)
        self.second = nn.Conv1d(width, width, kernel_size=3, stride=2, padding=1)
        self.positions = nn.Embedding(position.rows, width) if isinstance(position, Learned) else None

    def forward(self, mel: Tensor, places: Tensor | None) -> Tensor:
        """Vectors [B, S, D] of a spectrogram [B, M, 2S] at positions [B, S] (None: none)."""
        x = F.gelu(self.second(F.gelu(self.first(mel)))).mT  # [B, S, D]
        return x if self.positions is None or places is None else x + self.positions(places)
