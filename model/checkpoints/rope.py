"""Rotary positions as configurations state them: `rope_parameters`, or `rope_theta` beside `rope_scaling`."""

from model.checkpoints.attributes import LARGEST_LENGTH, Attributes
from model.config import Llama3Scaling, Rope
from model.errors import ConfigError

DEFAULT_BASE = 10000.0


def read_rope(
    attributes: Attributes,
    head_width: int,
    max_positions: int,
    share: float = 1.0,
    base: float = DEFAULT_BASE,
) -> Rope:
    """The rotation of `share` of a head's components by `base`, where the configuration names no other.

    Raises ConfigError for a kind of scaling that is not implemented, by its name.
    """
    base, scaling = attributes.number("rope_theta", base), None
    for name in ("rope_parameters", "rope_scaling"):
        stated = dict(attributes.mapping(name))
        kind = stated.pop("rope_type", stated.pop("type", "default"))
        nested = Attributes(stated, f"config.json's {name}")
        base = nested.number("rope_theta", base)
        share = nested.number("partial_rotary_factor", share)
        if kind == "llama3":
            scaling = _llama3(nested)
        elif kind != "default":
            raise ConfigError(
                f"config.json gives {name} of type {kind!r}, which is not implemented.", attribute=name
            )
        nested.finish()
    return Rope(base, _rotated(head_width, share), max_positions, scaling)


def _llama3(stated: Attributes) -> Llama3Scaling:
    return Llama3Scaling(
        factor=stated.number("factor"),
        low=stated.number("low_freq_factor"),
        high=stated.number("high_freq_factor"),
        original=stated.integer("original_max_position_embeddings", limit=LARGEST_LENGTH),
    )


def _rotated(head_width: int, share: float) -> int:
    width = int(head_width * share)
    if not 0 < width <= head_width or width % 2:
        raise ConfigError(
            f"config.json rotates {share:g} of a head width of {head_width} (partial_rotary_factor in "
            "rope_parameters or rope_scaling), but what is rotated in pairs must be even.",
            attribute="partial_rotary_factor",
        )
    return width
