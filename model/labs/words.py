"""Numbers and names in sentences: counts with their noun, minus signs, activations by their usual names."""

from collections.abc import Sequence

from model.config import Activation

ACTIVATION_NAMES: dict[Activation, str] = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
    "silu": "SiLU",
}


def counted(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: 0 tokens, 1 token, 1,024 tokens; `many` where the plural has no s."""
    return f"{signed(count)} {one if abs(count) == 1 else many or f'{one}s'}"


def signed(number: int) -> str:
    """A whole number as pages print it, such as −1,024."""
    return f"{number:,}".replace("-", "−")


def power(number: float) -> str:
    """A large or small number in two digits, such as 6.0 · 10¹⁰."""
    mantissa, exponent = f"{number:.1e}".split("e")
    return f"{mantissa} · 10{str(int(exponent)).translate(_RAISED)}"


def scaled(number: float, unit: str) -> str:
    """An amount in four digits and the unit that fits it, such as 1.44 TB, in steps of 1000."""
    for prefix in ("", "k", "M", "G", "T", "P", "E", "Z"):
        # What four digits round up to 1000 belongs to the next unit.
        if abs(float(f"{number:.4g}")) < 1000:
            return f"{number:.4g} {prefix}{unit}"
        number /= 1000
    return f"{power(number)} Y{unit}"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def often(count: int) -> str:
    """How many times: once, 2 times."""
    return "once" if count == 1 else counted(count, "time")


def span(count: int) -> str:
    """The places that so many things have, counted from 0: 0 to 5, or 0 alone."""
    return f"0 to {count - 1}" if count > 1 else "0 alone"


def one_of(count: int) -> str:
    """What to choose among so many things, counted from 0."""
    return f"choose one from 0 to {count - 1}" if count > 1 else "choose 0, the only one"


def listed(names: Sequence[str]) -> str:
    """A, B and C."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""
