"""What a pickle would do, read off its opcodes without doing any of it.

`torch.load(weights_only=True)` runs no foreign code, but what it does run can still be told to fill all
memory (`bytearray(2**40)`), so a file is first held to what a state dict needs.
"""

import pickletools
from typing import IO

from model.errors import CheckpointError

_STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
_NEEDED = frozenset(
    (
        "collections OrderedDict",
        "torch._utils _rebuild_tensor_v2",
        "torch._utils _rebuild_parameter",
        *(f"torch {name}Storage" for name in _STORAGES),
    )
)
# All other opcodes that look up or call something; a state dict has been written without them since 2016.
_CALLS = frozenset(("STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4"))
_MEMO = ("PUT", "GET")


def scan(stream: IO[bytes], name: str, limit: int) -> None:
    """Reads one pickle from `stream`, which belongs to the file `name`, up to its end.

    Raises CheckpointError where it is cut off, would call what a state dict does not need, or states a number
    beyond `limit`, the size of its file: no tensor in there can be larger.
    """
    try:
        for opcode, argument, _ in pickletools.genops(stream):
            _check(opcode.name, argument, name, limit)
    except (ValueError, IndexError, OverflowError, MemoryError) as error:
        raise CheckpointError(f"{name} is not a readable pickle: {error}.") from error


def _check(opcode: str, argument: object, name: str, limit: int) -> None:
    if opcode in _CALLS or (opcode == "GLOBAL" and argument not in _NEEDED):
        called = str(argument).replace(" ", ".") if opcode == "GLOBAL" else f"the opcode {opcode}"
        raise CheckpointError(
            f"{name} is a pickle that uses {called}, which tensors do not need: "
            "it was refused and nothing of it run."
        )
    if isinstance(argument, int) and not opcode.endswith(_MEMO) and abs(argument) > limit:
        raise CheckpointError(f"{name} claims a size of {argument}, but has {limit} bytes: it is damaged.")
