"""What is remembered of late, and not for ever."""

import threading
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """A dict of the last ``kept`` keys that were set, by whatever thread."""

    def __init__(self, kept: int) -> None:
        super().__init__()
        self._kept = kept
        self._lock = threading.Lock()

    def __setitem__(self, key: K, value: V) -> None:
        with self._lock:
            super().__setitem__(key, value)
            while len(self) > self._kept:
                del self[next(iter(self))]
