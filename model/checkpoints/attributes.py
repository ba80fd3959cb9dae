"""Strict reading of a configuration: every attribute is used, known not to matter, or refused by name."""

from collections.abc import Mapping
from typing import TypeVar

from model.errors import ConfigError

# Attributes any configuration may carry that do not change what a forward at inference computes.
NO_EFFECT = frozenset(
    (
        *("_name_or_path", "_commit_hash", "_attn_implementation_autoset", "transformers_version"),
        *("transformers.js_config", "model_type", "architectures", "torch_dtype", "dtype"),
        *("use_cache", "return_dict", "output_hidden_states", "output_attentions", "gradient_checkpointing"),
        *(
            "id2label",
            "label2id",
            "problem_type",
            "task_specific_params",
            "tokenizer_class",
            "finetuning_task",
        ),
        *("bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id"),
        *("initializer_range", "initializer_factor", "chunk_size_feed_forward"),
    )
)


# A size beyond this is damage, not a model; three of them multiplied still fit into 63 bits.
LARGEST_SIZE = 2**20
LARGEST_LENGTH = 2**31
LARGEST_NUMBER = 1e30

T = TypeVar("T")


class Attributes:
    """The attributes of one configuration, ticked off as a family reads them."""

    def __init__(self, values: Mapping[str, object], origin: str) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}
        self._nulls = values.keys() - self._values.keys()
        self._open = set(self._values) - NO_EFFECT
        self._origin = origin
        #: What was read and is not stated: names with the defaults of the family that stand in for them.
        self.assumed: dict[str, object] = {}

    def integer(self, name: str, default: int | None = None, limit: int = LARGEST_SIZE) -> int:
        """A whole number from 1 to `limit`. Raises ConfigError where it is missing or something else."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= limit:
            raise ConfigError(
                f"{self._origin} gives {name} = {value!r}, but it must be a whole number from 1 to {limit}.",
                attribute=name,
            )
        return value

    def index(self, name: str, default: int) -> int:
        """A whole number from 0. Raises ConfigError where it is something else."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST_SIZE:
            raise ConfigError(
                f"{self._origin} gives {name} = {value!r}, but it must be a whole number from 0.",
                attribute=name,
            )
        return value

    def integer_or_null(self, name: str, default: int, limit: int = LARGEST_SIZE) -> int | None:
        """`integer`, or None where the configuration states null, which is not to state nothing."""
        return None if name in self._nulls else self.integer(name, default, limit)

    def number(self, name: str, default: float | None = None) -> float:
        """A positive number. Raises ConfigError where it is missing or something else."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LARGEST_NUMBER:
            raise ConfigError(
                f"{self._origin} gives {name} = {value!r}, but it must be a number above 0.", attribute=name
            )
        return float(value)

    def number_or_null(self, name: str, default: float) -> float | None:
        """`number`, or None where the configuration states null, which is not the same as stating nothing."""
        return None if name in self._nulls else self.number(name, default)

    def flag(self, name: str, *, default: bool) -> bool:
        """True or false. Raises ConfigError where it is something else."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise ConfigError(
                f"{self._origin} gives {name} = {value!r}, but it must be true or false.", attribute=name
            )
        return value

    def choice(self, name: str, choices: Mapping[str, T], default: str | None = None) -> T:
        """One of the named choices. Raises ConfigError where it is another."""
        value = self._take(name, default)
        if not isinstance(value, str) or value not in choices:
            raise ConfigError(
                f"{self._origin} gives {name} = {value!r}, not implemented: {', '.join(choices)} are.",
                attribute=name,
            )
        return choices[value]

    def divide(self, name: str, value: int, by_name: str, by: int) -> int:
        """The quotient value / by, which must come out even. Raises ConfigError, naming both attributes."""
        if value % by:
            raise ConfigError(
                f"{self._origin} gives {name} = {value}, which {by_name} = {by} does not divide.",
                attribute=name,
            )
        return value // by

    def words(self, name: str) -> tuple[str, ...] | None:
        """A list of words, None where it is missing. Raises ConfigError where it is something else."""
        if name not in self._values:
            return None
        value = self._take(name, None)
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise ConfigError(
                f"{self._origin} gives {name} = {value!r}, but it must be a list of words.", attribute=name
            )
        return tuple(value)

    def mapping(self, name: str) -> Mapping[str, object]:
        """A nested object, empty where it is missing. Raises ConfigError where it is something else."""
        value = self._take(name, {})
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{self._origin} gives {name} = {value!r}, but it must be an object.", attribute=name
            )
        return value

    def expect(self, **only: object) -> None:
        """Attributes implemented for one value alone. Raises ConfigError, naming the one that differs."""
        for name, value in only.items():
            found = self._values.get(name, value)
            self._open.discard(name)
            if found != value:
                raise ConfigError(
                    f"{self._origin} gives {name} = {found!r}, which is not implemented (only {value!r} is).",
                    attribute=name,
                )

    def no_effect(self, *names: str) -> None:
        """Attributes of this family that do not change what a forward at inference computes."""
        self._open -= set(names)

    def finish(self) -> None:
        """Raises ConfigError naming the attributes that nobody has read."""
        if self._open:
            names = ", ".join(f"{name} = {self._values[name]!r}" for name in sorted(self._open))
            raise ConfigError(
                f"{self._origin} has attributes that are not implemented: {names}.",
                attributes=sorted(self._open),
            )

    def has(self, name: str) -> bool:
        """Whether the configuration states `name`."""
        return name in self._values

    def _take(self, name: str, default: object) -> object:
        self._open.discard(name)
        value = self._values.get(name, default)
        if value is None:
            raise ConfigError(
                f"{self._origin} does not say {name}, without which the model cannot be built.",
                attribute=name,
            )
        if name not in self._values and name not in NO_EFFECT and value != {}:
            self.assumed[name] = value
        return value
