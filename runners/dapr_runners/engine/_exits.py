"""What is done when a program ends without having stopped its runners.

The Dapr SDK works in threads that are no daemons: the interpreter waits for those, and shuts the
thread pools they work with, before it calls what is registered with ``atexit``. What stops them has
to come before that, and ``threading`` has only a private function for it. On a Python without it
such a program takes the SDK's ten seconds to end.
"""

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

_register: Callable[..., Any] | None = getattr(threading, "_register_atexit", None)


class Cuttable(Protocol):
    """What works until it is stopped."""

    def cut(self) -> None:
        """Stop, if it works."""
        ...


def cut_at_exit(what: Cuttable) -> None:
    """Stop ``what`` when the main thread is at its end, unless it is forgotten before."""
    _working(os.getpid()).add(what)


@functools.cache
def _working(process: int) -> "weakref.WeakSet[Cuttable]":
    """What works in a process: a fork has its parent's objects, and none of the threads."""
    working: weakref.WeakSet[Cuttable] = weakref.WeakSet()

    def cut_all() -> None:
        if os.getpid() == process:
            for what in list(working):
                what.cut()

    if _register is not None:
        _register(cut_all)
    return working
