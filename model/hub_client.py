"""The child process that talks to the Hugging Face Hub.

Usage: `hub_client.py RESULT list|download|cached REPO REVISION [NAME...]`, as a script on its own. RESULT
receives JSON: `{"sha", "files": {name: bytes}, "licence", "storage"}`, `{"path"}` or `{"failed": reason}`.
It imports nothing of this project, and never code from a repository.
"""

import errno
import json
import sys
from collections.abc import Callable
from pathlib import Path

from huggingface_hub import HfApi, constants, errors, snapshot_download
from huggingface_hub.file_download import repo_folder_name

# Why it failed and what to do, by kind of error; the more special kinds come first.
REASONS: tuple[tuple[type[Exception], str], ...] = (
    (
        errors.GatedRepoError,
        "{repo} asks for a login: accept its terms on its page, then run `hf auth login`",
    ),
    (errors.RevisionNotFoundError, "{repo} has no revision {revision}; choose another"),
    (
        errors.RepositoryNotFoundError,
        "there is no public repository {repo}; check the spelling, or run `hf auth login` if it is private",
    ),
    (errors.OfflineModeIsEnabled, "the Hub client is in offline mode; unset HF_HUB_OFFLINE"),
    (errors.HfHubHTTPError, "the Hub answered with an error ({kind}: {words}); try again later"),
    (ConnectionError, "there is no connection to the Hub; check the network or the proxy settings"),
)
# The client changed its HTTP library between versions; these names stayed.
NETWORK_ERRORS = {"TransportError", "NetworkError", "ProxyError", "TimeoutException"}


def listing(repo: str, revision: str) -> dict[str, object]:
    """The repository's commit, its files with their sizes in bytes, and its licence where it names one."""
    info = HfApi().model_info(repo, revision=revision, files_metadata=True)
    return {
        "sha": info.sha,
        "files": {file.rfilename: file.size or 0 for file in info.siblings or []},
        "licence": info.card_data.get("license") if info.card_data else None,
        "storage": str(Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=repo, repo_type="model"))),
    }


def download(repo: str, revision: str, *names: str) -> dict[str, object]:
    """Bring the named files into the Hub's own cache and say where they lie."""
    return {"path": snapshot_download(repo, revision=revision, allow_patterns=list(names))}


def cached(repo: str, revision: str, *patterns: str) -> dict[str, object]:
    """Where the Hub's cache holds a complete snapshot, without asking the network."""
    kept = snapshot_download(repo, revision=revision, allow_patterns=list(patterns), local_files_only=True)
    return {"path": kept}


ACTIONS: dict[str, Callable[..., dict[str, object]]] = {
    "list": listing,
    "download": download,
    "cached": cached,
}


def reason(error: Exception, repo: str, revision: str) -> str:
    """Why it failed and what to do, as a clause."""
    facts = {"repo": repo, "revision": revision, "kind": type(error).__name__}
    facts["words"] = " ".join(str(error).split())[:200]
    for kind, words in REASONS:
        if isinstance(error, kind):
            return words.format(**facts)
    if NETWORK_ERRORS & {parent.__name__ for parent in type(error).__mro__}:
        return REASONS[-1][1]
    return "the Hub client stopped ({kind}: {words})".format(**facts)


def main(arguments: list[str]) -> int:
    """Carry out one request; 0 when it succeeded."""
    result, action, repo, revision, *names = arguments
    try:
        answer = ACTIONS[action](repo, revision, *names)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        answer = {"failed": reason(error, repo, revision)}
    Path(result).write_text(json.dumps(answer), encoding="utf-8")
    return int("failed" in answer)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
