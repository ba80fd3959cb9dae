"""Progress in a terminal: one line that is redrawn, or in a log or pipe a line for every tenth."""

from typing import TextIO

from model.zoo import megabytes

WIDTH = 30


class ProgressLine:
    """Shows one download on `stream`."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self._redraws = stream.isatty()
        self._shown: object = None

    def progress(self, done: int, total: int) -> None:
        """Show that `done` of `total` bytes are here."""
        self.show(done / total if total else 0.0, f"{megabytes(done)} of {megabytes(total)}")

    def show(self, share: float, words: str) -> None:
        """Show that `share` (0 to 1) is done, with some words."""
        percent = f"{int(100 * share)} %"
        if self._redraws:
            bar = "█" * int(WIDTH * share)
            self._show((percent, words), f"\r\x1b[K{self._name}  {bar:░<{WIDTH}} {percent:>5}  {words}")
        else:
            self._show(int(10 * share), f"{self._name}: {percent}, {words}\n")

    def say(self, sentence: str) -> None:
        """Show a sentence on a line of its own."""
        self._write(f"\r\x1b[K{self._name}: {sentence}\n" if self._redraws else f"{self._name}: {sentence}\n")
        self._shown = None

    def _show(self, key: object, text: str) -> None:
        if key != self._shown:
            self._shown = key
            self._write(text)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
