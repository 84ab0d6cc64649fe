"""The chunks of a run that ``Pregel.invoke`` makes its result of: the last state, and what asks.

It streams ``updates`` and ``values``, and drops all but the last values and the interrupts. Here
the others are not even decoded.
"""

from collections.abc import Callable, Iterable
from typing import Any

from dapr_runners.engine import Chunk
from dapr_runners.langgraph import _private as lg
from dapr_runners.state import Codec

_MOST = 64
"""Chunks that are kept before they are looked at."""
_ASKS = lg.INTERRUPT.encode()
"""What is in the bytes of each chunk that tells of an interrupt, and seldom in others."""


class LastChunks:
    """Takes the chunks of one run; ``show`` gives them the shape that the call of ``invoke`` wants:
    pairs of a stream mode and its data."""

    def __init__(self, codec: Codec, show: Callable[[Any], Iterable[Any]]) -> None:
        self._codec = codec
        self._show = show
        self._chunks: list[Chunk] = []

    def add(self, chunk: Chunk) -> None:
        """The next chunk of the run."""
        self._chunks.append(chunk)
        if len(self._chunks) > _MOST:
            self._chunks = [kept for kept, _ in self._wanted()]

    def take(self) -> list[Any]:
        """Those of the chunks so far that count, in their order."""
        return [shown for _, shown in self._wanted()]

    def _wanted(self) -> list[tuple[Chunk, Any]]:
        wanted: list[tuple[Chunk, Any]] = []
        has_values = False
        for chunk in reversed(self._chunks):
            if has_values and _ASKS not in chunk.data:
                continue
            for shown in self._show(self._codec.decode(chunk.data, chunk.id)):
                mode, data = shown
                if mode == "values" and not has_values:
                    has_values = True
                    wanted.append((chunk, shown))
                elif mode == "updates" and isinstance(data, dict) and lg.INTERRUPT in data:
                    wanted.append((chunk, shown))
        return wanted[::-1]
