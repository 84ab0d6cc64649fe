"""A lock on a file that the operating system gives back when its holder dies."""

import os
import sys
import time
from pathlib import Path

_PATIENCE = 5.0
"""Seconds to wait for a predecessor that was killed and is still being torn down."""


class FileLock:
    """Exclusive among processes. The file itself is left behind: removing it would race."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock; False when another process keeps it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + _PATIENCE
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                os.close(descriptor)
                return False
            time.sleep(0.02)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
