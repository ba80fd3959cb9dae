"""The header of a GGUF file, read with bounds that the `gguf` package does not keep."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGUFValueType as Kind

Order = Literal["I", "S", "<"]
Parts = tuple[int, list[npt.NDArray[Any]], list[int], list[Kind]]

# More than any vocabulary and its merges; each costs far more memory than the bytes that claim it.
_MOST_STRINGS = 2**22
_MOST_FIELDS = 2**16
_MOST_DIMENSIONS = 4


class BoundedReader(gguf.GGUFReader):
    """Raises ValueError where its parent would read past the end, nest or share bytes, maybe for hours."""

    def __init__(self, file: Path) -> None:
        self._strings = 0
        super().__init__(file)

    def _get(
        self, offset: int, dtype: npt.DTypeLike, count: int = 1, override_order: Order | None = None
    ) -> npt.NDArray[Any]:
        if offset + np.dtype(dtype).itemsize * int(count) > self.data.size:
            raise ValueError(f"it ends after {self.data.size} bytes, in the middle of a value")
        return super()._get(offset, dtype, count, override_order)

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> Parts:
        if raw_type != Kind.ARRAY:
            parts: Parts = super()._get_field_parts(orig_offs, raw_type)
            return parts
        kind, count = (
            Kind(int(self._get(orig_offs, np.uint32)[0])),
            int(self._get(orig_offs + 4, np.uint64)[0]),
        )
        start = orig_offs + 12
        if kind == Kind.ARRAY:
            raise ValueError("it holds arrays of arrays")
        if kind == Kind.STRING:
            return self._strings_at(orig_offs, start, count)
        # One view for all numbers, where the parent makes an array of each.
        numbers = self._get(start, self.gguf_scalar_to_np[kind], count)
        return 12 + numbers.nbytes, [numbers], [0], [Kind.ARRAY, kind]

    def _strings_at(self, origin: int, start: int, count: int) -> Parts:
        self._strings += count
        if self._strings > _MOST_STRINGS:
            raise ValueError(f"it claims {self._strings} strings")
        parts: list[npt.NDArray[Any]] = []
        for _ in range(count):
            length, content = self._get_str(start)
            parts.append(content)
            start += length.nbytes + content.nbytes
        return start - origin, parts, list(range(count)), [Kind.ARRAY, Kind.STRING]

    def _build_fields(self, offs: int, count: int) -> int:
        # Each of a million slices of a memmap would be a memmap, which takes far longer to make.
        self.data = self.data.view(np.ndarray)  # type: ignore[assignment]  # the parent indexes it only
        if count > _MOST_FIELDS:
            raise ValueError(f"it claims {count} metadata fields")
        end: int = super()._build_fields(offs, count)
        return end

    def _build_tensors(self, start_offs: int, fields: list[gguf.ReaderField]) -> None:
        # Before the parent multiplies and adds in 64 bits, where a claim can wrap around.
        places = sorted((*_extent(field), field.name) for field in fields)
        for start, end, name in places:
            if start_offs + end > self.data.size:
                raise ValueError(f"{name} lies at {start} to {end}, past the end")
        for (_, end, name), (start, _, other) in pairwise(places):
            if start < end:
                raise ValueError(f"{name} and {other} share bytes")
        super()._build_tensors(start_offs, fields)


def _extent(field: gguf.ReaderField) -> tuple[int, int]:
    """Where a tensor starts and ends, counted from where tensors start."""
    *_, rank, dims, kind, offset = field.parts
    if rank[0] > _MOST_DIMENSIONS:
        raise ValueError(f"{field.name} has {rank[0]} dimensions")
    block, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(int(kind[0]))]
    count = math.prod(map(int, dims))
    return int(offset[0]), int(offset[0]) + count * size // block
