"""What happens in a run, held back for a caller that wants only its end.

A caller that is woken for every record of a long run, and has nothing to do with it yet, costs the
steps of all runs in its process more than they cost themselves.
"""

import threading
from collections.abc import Callable

from dapr_runners.engine._bus import Cancelled, LiveChunk, Message

_MOST = 64
"""Messages that are held: what a step leaves may be large."""


class Held:
    """Takes messages from any thread, and hands them on together: those before the end of a run
    with it, or as many as there may be. Live chunks are dropped: their records have them too."""

    def __init__(self, hand_on: Callable[[list[Message]], None]) -> None:
        self._hand_on = hand_on
        self._lock = threading.Lock()
        self._messages: list[Message] = []
        self._has_grown = False

    def put(self, message: Message) -> None:
        """Take ``message``."""
        self._has_grown = True
        if isinstance(message, LiveChunk):
            return
        with self._lock:
            self._messages.append(message)
            if not tells_end(message) and len(self._messages) < _MOST:
                return
            messages, self._messages = self._messages, []
        self._hand_on(messages)

    def take(self) -> list[Message]:
        """Those that are held right now."""
        with self._lock:
            messages, self._messages = self._messages, []
        return messages

    def has_grown(self) -> bool:
        """Whether anything has come since this was asked before."""
        has_grown, self._has_grown = self._has_grown, False
        return has_grown


def tells_end(message: Message) -> bool:
    """Whether ``message`` tells of the end of its run."""
    if isinstance(message, LiveChunk):
        return False
    return isinstance(message, Cancelled) or message.outcome["k"] == "end"
