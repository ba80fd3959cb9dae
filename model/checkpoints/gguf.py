"""GGUF, the single-file format of llama.cpp: metadata as plain values, tensors dequantised to fp32."""

from pathlib import Path

import gguf
import numpy as np
import torch
from torch import Tensor

from model.checkpoints.gguf_header import BoundedReader
from model.errors import CheckpointError


class GGUF:
    """The metadata and tensors of one GGUF file. Raises CheckpointError where the file cannot be read."""

    def __init__(self, file: Path) -> None:
        self.origin = file.name
        try:
            reader = BoundedReader(file)
            self.fields = {name: field.contents() for name, field in reader.fields.items()}
        except (OSError, ValueError, KeyError, IndexError, OverflowError, MemoryError) as error:
            raise CheckpointError(f"{file.name} is not a readable GGUF file: {error}.") from error
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}

    @property
    def names(self) -> frozenset[str]:
        """Names of all tensors."""
        return frozenset(self._tensors)

    def rows(self, name: str) -> int:
        """Number of rows of a tensor. Raises CheckpointError where it is missing."""
        if name not in self._tensors:
            raise CheckpointError(f"{self.origin} lacks the tensor {name}.", tensor=name)
        return int(self._tensors[name].shape[-1])

    def tensor(self, name: str) -> Tensor:
        """One tensor in fp32, in the row-major shape torch uses."""
        found = self._tensors[name]
        try:
            values = gguf.dequantize(found.data, found.tensor_type)
        except (NotImplementedError, ValueError) as error:
            raise CheckpointError(
                f"{self.origin} stores {name} as {found.tensor_type.name}, which cannot be read: {error}.",
                tensor=name,
            ) from error
        return torch.from_numpy(np.array(values, dtype=np.float32))
