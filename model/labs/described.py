"""A stack in a few words, for tables and drawings."""

from model.config import StackConfig
from model.labs.words import ACTIVATION_NAMES
from model.rules import mask_in_words


def describe(stack: StackConfig) -> dict[str, object]:
    """A stack as a table row."""
    attention, feed_forward = stack.attention, stack.feed_forward
    return {
        "stack": stack.name,
        "layers": stack.layers,
        "width": stack.width,
        "heads": attention.heads,
        "key heads": attention.kv_heads,
        "head width": attention.head_width,
        "FFN width": feed_forward.width,
        "activation": ACTIVATION_NAMES[feed_forward.activation] + (", gated" if feed_forward.gated else ""),
        "norm": f"{type(stack.norm).__name__}, {stack.norm_placement}",
        "position": _POSITIONS[type(stack.position).__name__],
        "mask": mask_in_words(stack.mask),
    }


_POSITIONS = {
    "Learned": "learned table",
    "Sinusoidal": "sinusoids",
    "Rope": "rotary",
    "AlibiPosition": "ALiBi",
    "RelativeBuckets": "relative buckets",
    "NoPosition": "none",
}
