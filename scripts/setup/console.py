"""What the set-up says: short lines on standard output, and one sentence when it cannot go on."""

import sys
import time


class SetupError(Exception):
    """Set-up cannot go on; the message is one sentence saying what happened and what to do."""


def say(text: str) -> None:
    """Prints one line of progress."""
    print(f"setup: {text}", flush=True)


class Meter:
    """A share of something, rewritten in place on a terminal and printed every ten seconds elsewhere."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._live = sys.stdout.isatty()
        self._interval = 0.2 if self._live else 10.0
        self._printed_at = time.monotonic()

    def update(self, share: float) -> None:
        """Shows `share` (0 to 1), unless the last one was shown a moment ago."""
        now = time.monotonic()
        if now - self._printed_at < self._interval and share < 1:
            return
        if not self._live and share >= 1:
            return
        self._printed_at = now
        line = f"setup:   {self.what} {share:.0%}"
        print(
            f"\r{line}\033[K" if self._live else line,
            end="\n" if share >= 1 or not self._live else "",
            flush=True,
        )
