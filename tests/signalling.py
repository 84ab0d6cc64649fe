"""Signals sent so that one knows what the system does with them."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest


def send(pid: int, number: signal.Signals) -> None:
    """Send ``number`` to a process, and wait until one of its threads was given it: another one
    that is alike would be taken for the same before."""
    _need_proc()
    os.kill(pid, number)
    while _is_in(number, pid, "ShdPnd"):
        time.sleep(0.001)


def send_beside(pid: int, number: signal.Signals) -> None:
    """:func:`send`, where the system gives it to another thread than the main one, as it may at any
    time: under load it does."""
    _need_proc()
    while (thread := next(_threads_that_take(pid, number), None)) is None:
        time.sleep(0.001)
    send(thread, number)  # to the whole process, and this thread is the first to be asked


def _need_proc() -> None:
    if not Path("/proc/self/task").exists():
        pytest.skip("no /proc to see threads and their signals in")


def _threads_that_take(pid: int, number: signal.Signals) -> Iterator[int]:
    for path in Path(f"/proc/{pid}/task").iterdir():
        thread = int(path.name)
        with suppress(FileNotFoundError):  # it has just ended
            if thread != pid and not _is_in(number, thread, "SigBlk"):
                yield thread


def _is_in(number: signal.Signals, thread: int, mask: str) -> bool:
    """Whether it is among those that a thread is said to block, or a process not to have taken."""
    lines = Path(f"/proc/{thread}/status").read_text().splitlines()
    value = next(line.split()[1] for line in lines if line.startswith(mask))
    return bool(int(value, 16) >> (number - 1) & 1)
