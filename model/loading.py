"""From a path to a model that runs: checkpoint, modules, weights, tokenizer."""

import math
from dataclasses import dataclass
from pathlib import Path

import torch

from model.blueprint import blueprint
from model.checkpoints.reader import open_checkpoint
from model.config import NoPosition, TransformerConfig
from model.devices import choose_dtype
from model.interventions import KINDS
from model.rules import mask_in_words
from model.text import TextEncoder
from model.transformer import Transformer

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run. `encoder` is None for a folder without tokenizer: only ids can be run then."""

    transformer: Transformer
    encoder: TextEncoder | None
    family: str
    device: str
    dtype: str
    notices: tuple[str, ...]

    @property
    def config(self) -> TransformerConfig:
        """The configuration it was built from."""
        return self.transformer.config

    @property
    def bytes(self) -> int:
        """Bytes of its weights in memory, shared ones once."""
        storages = [parameter.untyped_storage() for parameter in self.transformer.parameters()]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    @property
    def _has_positions(self) -> bool:
        return not any(isinstance(stack.position, NoPosition) for stack in self.config.stacks)

    def describe(self) -> dict[str, object]:
        """The facts a list of models shows."""
        stack = self.config.stack
        return {
            "family": self.family,
            "stacks": [one.name for one in self.config.stacks],
            "layers": stack.layers,
            "heads": stack.attention.heads,
            "width": stack.width,
            "max_tokens": stack.max_tokens,
            "readout": self.config.readout,
            "own_mask": mask_in_words(stack.mask),
            "supports": [kind for kind in KINDS if kind != "set_position" or self._has_positions],
        }


def load_model(
    path: Path, *, device: str = "cpu", dtype: str = "float32", memory: int | None = None
) -> LoadedModel:
    """Builds and fills the model at `path`: a folder (config.json, weights, tokenizer.json) or a .gguf file.

    With dtype "auto" the model runs in fp32 where that fits into `memory` bytes, else in bf16. Raises
    CheckpointError or ConfigError where the checkpoint is damaged or holds what is not implemented.
    """
    checkpoint, encoder = open_checkpoint(path)
    transformer = blueprint(checkpoint.config)
    shapes = {name: tuple(parameter.shape) for name, parameter in transformer.state_dict().items()}
    tied = checkpoint.config.head is not None and checkpoint.config.head.tied
    counted = [shape for name, shape in shapes.items() if not (tied and name == "head.projection.weight")]
    dtype = choose_dtype(dtype, sum(map(math.prod, counted)), memory)
    state = checkpoint.state_dict(shapes)
    moved = {id(tensor): tensor.to(device, DTYPES[dtype]) for tensor in state.values()}
    placed = {name: moved[id(tensor)] for name, tensor in state.items()}
    transformer.load_state_dict(placed, strict=True, assign=True)
    transformer.requires_grad_(requires_grad=False).eval()
    return LoadedModel(transformer, encoder, checkpoint.family, device, dtype, checkpoint.notices)
