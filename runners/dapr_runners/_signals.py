"""Signals of the process, none lost, whichever thread the system gives them to.

A handler runs in the main thread, once that has left what it waits in. The system interrupts any
thread, though: while the main thread has not yet woken up from a signal, the next goes to another
one, which may take both. A main thread that waits for a lock, or for a process, then waits on, and
of two that are alike one handler is run. The descriptor that each number is written to, by the
thread that gets the signal, misses none.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import get_ident
from types import FrameType
from typing import Any


class Signals:
    """What came since :func:`caught`, in order. To be read by one thread, whichever it is."""

    def __init__(self, numbers: tuple[int, ...], receiver: socket.socket, end: Callable[[], None]):
        self._numbers = numbers
        self._receiver = receiver
        self.end = end
        """Let :meth:`next` wait no more."""

    def next(self, seconds: float | None = None) -> int | None:
        """Wait for the next one: its number. None when ``seconds`` are over, or it has ended."""
        give_up_at = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if give_up_at is None else max(0.0, give_up_at - time.monotonic())
            self._receiver.settimeout(left)
            try:
                found = self._receiver.recv(1)
            except (TimeoutError, BlockingIOError):
                return None
            if not found:
                return None
            if found[0] in self._numbers:  # else it is one that the program handles itself
                return found[0]


@contextmanager
def caught(*numbers: int) -> Generator[Signals]:
    """Keep ``numbers`` from what they else do, and count them. For the main thread only, else
    ValueError. A process that is forked meanwhile has none of it: its signals are its own."""
    before: dict[int, Any] = {}

    def restore() -> None:
        while before:  # SIGINT is the first to be caught, and the last to be let go: it may raise
            number, handler = before.popitem()
            signal.signal(number, handler or signal.SIG_DFL)

    masks: dict[int, set[Any]] = {}

    def before_fork() -> None:
        if before:
            # What comes to the new process before it is on its own would be counted here.
            masks[get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)

    def after_fork(is_child: bool) -> None:
        if is_child and before:
            signal.set_wakeup_fd(-1)
            restore()
        if (mask := masks.pop(get_ident(), None)) is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    receiver, sender = socket.socketpair()
    with receiver, sender:
        sender.setblocking(False)
        outer = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        try:
            for number in sorted(numbers, key=lambda each: each != signal.SIGINT):
                before[number] = signal.signal(number, _leave_it)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(
                    before=before_fork,
                    after_in_parent=lambda: after_fork(False),
                    after_in_child=lambda: after_fork(True),
                )
            yield Signals(numbers, receiver, lambda: sender.shutdown(socket.SHUT_WR))
        finally:
            restore()
            signal.set_wakeup_fd(outer)


def _leave_it(_number: int, _frame: FrameType | None) -> None:
    """It has been counted."""
