"""What the owner of the server decides: command line first, then ATLAS_* variables, then these defaults."""

import ipaddress
import os
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_cache_path
from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from app import memory
from model import zoo
from model.errors import InputError

APPLICATION = "attention-atlas"
PREFIX = "ATLAS_"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

Names = Annotated[tuple[str, ...], NoDecode]
Folders = Annotated[tuple[Path, ...], NoDecode]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to `host`."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _host_names(data: dict[str, Any]) -> tuple[str, ...]:
    host = data.get("host", "")
    own = () if is_loopback(host) else (host, socket.gethostname())
    return tuple(dict.fromkeys((*LOOPBACK_NAMES, *own)))


class Settings(BaseSettings):
    """The server's settings; each is also an environment variable, `ATLAS_` and its name in capitals.

    Lists are written with commas (`ATLAS_PRELOAD=minilm,smollm2`), folders with the system's path separator.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    device: str = Field("auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$", description="Where models run.")
    dtype: Literal["auto", "float32", "bfloat16", "float16", "float64"] = Field(
        "auto", description="Arithmetic of the models; auto is float32 when the model fits."
    )
    hub: bool = Field(
        default_factory=lambda data: is_loopback(data.get("host", "")),
        description="Allow fetching from the Hugging Face Hub; off when others can reach the server.",
    )
    model_root: Folders = Field((), description="Folders whose models are offered as local:<root>/<name>.")
    cache_dir: Path = Field(
        default_factory=lambda: user_cache_path(APPLICATION), description="Where fetched models are kept."
    )
    allowed_hosts: Names = Field(
        default_factory=_host_names, description="Names under which browsers may reach the server."
    )
    trace_bytes: int | None = Field(
        default_factory=memory.trace_budget, gt=0, description="Memory for traces that are kept."
    )
    model_bytes: int | None = Field(
        None, gt=0, description="Memory for loaded models; by default half of the device's."
    )
    preload: Names = Field(
        default_factory=lambda: tuple(zoo.entries()), description="Models fetched and loaded at the start."
    )
    threads: int | None = Field(None, ge=1, description="CPU threads of a run; by default torch's choice.")

    @field_validator("allowed_hosts", "preload", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        return _split(value, ",")

    @field_validator("model_root", mode="before")
    @classmethod
    def _split_folders(cls, value: object) -> object:
        # As a path it would be the current folder, which a variable that is not set should not offer.
        if isinstance(value, tuple) and any(isinstance(part, str) and not part.strip() for part in value):
            raise ValueError('a path is empty; write "." where the current folder is meant')
        return _split(value, os.pathsep)

    @field_validator("model_root")
    @classmethod
    def _check_roots(cls, roots: tuple[Path, ...]) -> tuple[Path, ...]:
        names: set[str] = set()
        resolved = tuple(root.expanduser().resolve() for root in roots)
        for root in resolved:
            if not root.is_dir():
                raise ValueError(f"{root} is not a folder")
            if (root / "config.json").exists():
                raise ValueError(f"{root} is a model itself; give the folder that holds it, {root.parent}")
            if root.name in names:
                raise ValueError(
                    f"two folders are called {root.name}, so their models could not be told apart"
                )
            names.add(root.name)
        return resolved

    @field_validator("cache_dir")
    @classmethod
    def _full_path(cls, folder: Path) -> Path:
        return folder.expanduser().absolute()


def load_settings(**given: Any) -> Settings:
    """Settings from the command line's values (None: not given), the environment and the defaults.

    Raises InputError with one sentence that names the setting, its value and what is allowed.
    """
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise InputError(_sentence(error)) from error


def unknown_variables() -> list[str]:
    """ATLAS_* variables that are set but mean nothing, most likely misspelt."""
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    return sorted(
        name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known
    )


def _split(value: object, separator: str) -> object:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(separator) if part.strip())


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    name = str(first["loc"][0])
    what = first["msg"].removeprefix("Value error, ")
    return f"The setting {name} ({PREFIX}{name.upper()}) does not take {first['input']!r}: {what}."
