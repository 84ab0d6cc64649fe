"""A line at the bottom of a terminal, below what programs print there.

The rest of the terminal scrolls above it, whoever prints: the program beside a sidecar writes to
the terminal itself.
"""

import threading
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

_EVERY = 0.5
"""Seconds between two looks at what there is to show."""


class BottomLine:
    """Shows what ``look`` gives, again and again, while the ``with`` block runs; nothing where it
    gives None, and nothing at all where ``console`` is no terminal."""

    def __init__(self, console: Console, look: Callable[[], Text | None]) -> None:
        self._console = console
        self._look = look
        self._height = 0
        """Of the terminal, where a line of it is ours."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> "BottomLine":
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._thread = threading.Thread(
                target=self._serve, name="dapr-runners-progress", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        try:
            while not self._over.wait(_EVERY):
                shown = self._look()
                if shown is None:
                    self._clear()
                else:
                    self._show(shown)
        finally:
            self._clear()

    def _show(self, line: Text) -> None:
        width, height = self._console.size
        parts: list[str] = []
        if height != self._height:
            # A line is made free, and the others scroll above it from now on.
            parts.append(f"\n\x1b7\x1b[1;{height - 1}r\x1b8\x1b[1A")
            self._height = height
        line.truncate(width - 1, overflow="ellipsis")
        with self._console.capture() as captured:
            self._console.print(line, end="", soft_wrap=True)
        parts.append(f"\x1b7\x1b[{height};1H\x1b[2K{captured.get()}\x1b8")
        self._write("".join(parts))

    def _clear(self) -> None:
        if self._height:
            self._write(f"\x1b7\x1b[{self._height};1H\x1b[2K\x1b[r\x1b8")
            self._height = 0

    def _write(self, text: str) -> None:
        self._console.file.write(text)
        self._console.file.flush()
