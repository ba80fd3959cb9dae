"""Tiny random checkpoints of encoder–decoder families, written through our mapping tables, backwards."""

import re
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoints.attributes import Attributes
from model.checkpoints.reader import FAMILIES
from model.transformer import Transformer
from tests import tiny

# Ids 2 and 3 are [CLS] and [SEP] of `small_tokenizers.word_piece`: how a target starts and ends.
_BART_LIKE: dict[str, object] = {
    "vocab_size": 97,
    "d_model": 60,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 70,
    "decoder_ffn_dim": 50,
    "decoder_start_token_id": 2,
    "eos_token_id": 3,
}
BART = _BART_LIKE | {"model_type": "bart", "max_position_embeddings": 48}
T5: dict[str, object] = {
    "model_type": "t5",
    "vocab_size": 97,
    "d_model": 60,
    "d_kv": 14,
    "d_ff": 70,
    "num_layers": 2,
    "num_heads": 5,
    "relative_attention_num_buckets": 12,
    "relative_attention_max_distance": 30,
    "n_positions": 40,
    "decoder_start_token_id": 0,
    "eos_token_id": 3,
}
# 1 second of sound: 50 positions, 100 frames of the spectrogram.
WHISPER = _BART_LIKE | {
    "model_type": "whisper",
    "num_mel_bins": 16,
    "max_source_positions": 50,
    "max_target_positions": 40,
}


class _Named:
    """A source of which nothing but its names is known."""

    origin = "tiny"

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def tensor(self, name: str) -> Tensor:
        raise AssertionError(name)


# Standard deviations of matrices, and how much larger those of q and k are, at which attention is peaked.
_SPREAD = {"bart": 0.12, "t5": 0.15, "whisper": 0.25}
_PEAK = {"bart": 3.0}


def write(folder: Path, config: Mapping[str, object], seed: int = 0) -> Path:
    """Writes a checkpoint folder of the family that the configuration names."""
    family = str(config["model_type"])
    source = _Named("final_logits_bias") if family == "bart" else _Named()
    checkpoint = FAMILIES[family](Attributes(config, "config.json"), source, ())
    with torch.device("meta"):
        shapes = {name: part.shape for name, part in Transformer(checkpoint.config).state_dict().items()}
    random, tensors = torch.Generator().manual_seed(seed), {}
    for template in checkpoint.table:
        layers = template.layers or checkpoint.config.stack.layers
        for row in [template.at(layer) for layer in range(layers if "{layer}" in template.source else 1)]:
            drawn = tiny.draw(row.source, tuple(shapes[row.targets[0]]), random, _SPREAD[family])
            scores = re.search(r"\b[qk]_proj\.weight", row.source)
            tensors[row.source] = drawn * _PEAK.get(family, 1.0) if scores else drawn
    return tiny.write(folder, config, tensors)
