"""Where and in which arithmetic a model runs."""

import torch

from model.errors import InputError

# Room for activations and traces beside the weights.
SHARE_FOR_WEIGHTS = 0.6


def choose_device(wanted: str) -> str:
    """`wanted`, or for auto the best there is: cuda, mps or cpu. Raises InputError where it is not there."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return next(name for name, there in available.items() if there)
    if not available[wanted.partition(":")[0]]:
        raise InputError(
            f"This machine has no {wanted} device that torch {torch.__version__} can use: choose another."
        )
    return wanted


def choose_dtype(wanted: str, parameters: int, memory: int | None) -> str:
    """`wanted`, or for auto float32 where that many parameters fit into `memory` bytes, else bfloat16."""
    if wanted != "auto":
        return wanted
    fits = memory is None or parameters * torch.float32.itemsize <= SHARE_FOR_WEIGHTS * memory
    return "float32" if fits else "bfloat16"


def use_exact_arithmetic() -> None:
    """Turns TF32 off, in matrix products and convolutions: it rounds inputs to 10 bits."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
