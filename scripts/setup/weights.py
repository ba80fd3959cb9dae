"""The built-in models' weights, fetched into the user's cache before the tests that look at them."""

import os
import subprocess

import index
from console import SetupError, say
from environment import Environment


def ensure(environment: Environment) -> None:
    """Fetches the built-in models that the tests need; a fetched one is only checked.

    Raises SetupError when that fails though ATLAS_REQUIRE_MODELS=1 asks for them.
    """
    command = [str(environment.folder / "bin" / "attention-atlas"), "models", "fetch"]
    failed = subprocess.run(
        command, stdin=subprocess.DEVNULL, check=False, env=index.clean_environment()
    ).returncode
    if not failed:
        return
    if os.environ.get("ATLAS_REQUIRE_MODELS") == "1":
        raise SetupError(
            "the built-in models could not be fetched (see above) and ATLAS_REQUIRE_MODELS=1 asks for them"
        )
    say("the built-in models could not be fetched (see above): the tests that need them will be skipped")
