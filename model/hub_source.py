"""Fetch files of a Hugging Face repository into the Hub client's own cache, through a child process.

The Hub's cache is shared with the user's other tools, so what they already have is not fetched again.
"""

import errno
import fnmatch
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.child import run_watched, tail, total_size
from model.fetching import Listener, SourceError

CLIENT = Path(__file__).with_name("hub_client.py")
TEXT_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class HubSource:
    """Files of a repository at a pinned commit (`members`: our name -> path in the repository)."""

    repo: str
    revision: str
    licence: str
    members: dict[str, str]

    words = "the Hugging Face Hub"


@dataclass(frozen=True)
class HubListing:
    """What a repository holds at the commit `sha` that `revision` stood for when it was asked.

    `files` maps name to bytes; `storage` is the repository's place in the Hub's cache.
    """

    repo: str
    revision: str
    sha: str
    files: dict[str, int]
    licence: str | None
    storage: Path


def list_files(repo: str, revision: str, folder: Path) -> HubListing:
    """Ask the Hub what `repo` holds. `folder` is scratch space. Raises SourceError."""
    answer = _ask(folder, lambda: None, "list", repo, revision)
    storage = Path(answer["storage"])
    return HubListing(repo, revision, answer["sha"], answer["files"], answer["licence"], storage)


def wanted(files: dict[str, int]) -> dict[str, int]:
    """The files of a repository that this project reads: configuration, tokenizer and one set of safetensors.

    Raises SourceError where there is none: pickled weights from strangers are not opened.
    """
    if INDEX in files:
        weights = [INDEX, *fnmatch.filter(files, "model-*-of-*.safetensors")]
    elif "model.safetensors" in files:
        weights = ["model.safetensors"]
    else:
        raise SourceError("it has no model.safetensors, and other weight formats from the Hub are not opened")
    if "config.json" not in files:
        raise SourceError("it has no config.json, so what its weights mean is not stated")
    names = [*(name for name in TEXT_FILES if name in files), *weights]
    return {name: files[name] for name in names}


def download(listing: HubListing, names: list[str], folder: Path, listener: Listener) -> Path:
    """Fetch the named files and return the snapshot folder that holds them, named by its commit.

    `folder` is scratch space. A branch is fetched by name, so that the Hub's cache can answer for it offline.

    Raises SourceError with the reason in words, and OSError (ENOSPC) where the disk is full.
    """
    total = sum(listing.files[name] for name in names if not _cached(listing, name))
    before = total_size(listing.storage)

    def watch() -> None:
        listener.progress(max(0, min(total_size(listing.storage) - before, total)), total)

    answer = _ask(folder, watch, "download", listing.repo, listing.revision, *names)
    listener.progress(total, total)
    return Path(answer["path"])


def _cached(listing: HubListing, name: str) -> bool:
    return (listing.storage / "snapshots" / listing.sha / name).exists()


def cached(repo: str, revision: str, folder: Path) -> Path | None:
    """The complete snapshot that this machine already has, asked for without the network."""
    patterns = [*TEXT_FILES, INDEX, "model.safetensors", "model-*-of-*.safetensors"]
    try:
        return Path(_ask(folder, lambda: None, "cached", repo, revision, *patterns)["path"])
    except SourceError:
        return None


def _ask(folder: Path, watch: Callable[[], None], *request: str) -> dict[str, Any]:
    # -P keeps this folder off the child's import path, where our trace.py would hide Python's own.
    result = folder / "result.json"
    command = [sys.executable, "-P", str(CLIENT), str(result), *request]
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    status, log = run_watched(command, folder, environment=quiet, watch=watch)
    if "No space left on device" in log:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    answer: dict[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}
    result.unlink(missing_ok=True)
    if status != 0 or "failed" in answer:
        reason = answer.get(
            "failed", f"the Hub client stopped with exit status {status}; its last lines say why"
        )
        raise SourceError(reason, tail(log))
    return answer
