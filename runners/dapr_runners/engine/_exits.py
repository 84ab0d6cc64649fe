"""What is done when a program ends without having stopped its runners.

The Dapr SDK reads work in threads that are no daemons, and the interpreter waits for those before
it calls what is registered with ``atexit``.
"""

import functools
import os
import threading
import weakref
from typing import Protocol


class Cuttable(Protocol):
    """What works until it is stopped."""

    def cut(self) -> None:
        """Stop at once, if it works."""
        ...


def cut_at_exit(what: Cuttable) -> None:
    """Stop ``what`` when the main thread is at its end, unless it is forgotten before."""
    _watch(os.getpid()).add(what)


class _Watch:
    def __init__(self) -> None:
        self._working: weakref.WeakSet[Cuttable] = weakref.WeakSet()
        # No daemon, so that the interpreter waits until all is cut.
        threading.Thread(target=self._run, name="dapr-runners-exit", daemon=False).start()

    def add(self, what: Cuttable) -> None:
        self._working.add(what)

    def _run(self) -> None:
        threading.main_thread().join()
        for what in list(self._working):
            what.cut()


@functools.cache
def _watch(_process: int) -> _Watch:
    """The one of a process: a fork has none of the threads."""
    return _Watch()
