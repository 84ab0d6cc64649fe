"""Traces that nodes leave behind, in whichever process they run."""

import logging
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from langgraph.config import get_config

MARKS = "CORPUS_MARKS"
"""Environment variable that names the file."""
FAULTS = "faults"
_PATIENCE = 60.0


def mark(name: str) -> None:
    """Leave a trace of one execution of ``name`` in the thread of the running graph."""
    with _file().open("a") as file:
        file.write(f"{_thread()} {name}\n")


def wait_for_mark(name: str) -> None:
    """Wait until ``name`` was executed in this thread."""
    give_up_at = time.monotonic() + _PATIENCE
    while f"{_thread()} {name}\n" not in _file().read_text():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"{name} was not executed")
        time.sleep(0.005)


def fail_once(error: Exception, after: float = 0.0) -> None:
    """Raise ``error``, the first time in this thread, and not before ``after`` seconds."""
    flag = re.sub(r"\W", "-", f"{_thread()}-{error}")
    try:
        _file().with_suffix(f".{flag}").touch(exist_ok=False)
    except FileExistsError:
        return
    time.sleep(after)
    raise error


def count_marks(file: Path, case: str) -> Counter[str]:
    """How often each node of ``case`` was executed."""
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(line.partition(" ")[2] for line in lines if line.startswith(f"{case}/"))


class _Faults(logging.Handler):
    """Leaves a trace of each activity that failed: the engine tries again, so that results do not
    tell of it."""

    def emit(self, record: logging.LogRecord) -> None:
        with _file().open("a") as file:
            file.write(f"{FAULTS}/ {record.getMessage().splitlines()[0]}\n")


def watch_activities() -> Callable[[], None]:
    """Mark activities of this process that fail, as the case :data:`FAULTS`; returns its end."""
    log, handler = logging.getLogger("WorkflowRuntime"), _Faults(logging.WARNING)
    log.addHandler(handler)
    return partial(log.removeHandler, handler)


def _file() -> Path:
    return Path(os.environ[MARKS])


def _thread() -> str:
    return get_config()["configurable"]["thread_id"]
