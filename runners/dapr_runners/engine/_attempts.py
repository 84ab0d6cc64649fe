"""How often a step was begun without coming back.

A step that kills its worker must not kill workers for ever, so attempts are counted before they
begin. On a hot loop (see ``_journal``) that count would cost a state call a step, so there it is
written only for a step that runs longer than ``_MARK_AFTER``; for a shorter one the record of the
plan tells who went on with it, and a re-dispatch looks whether that process still lives. On another
host that cannot be seen: a step that kills a worker there within ``_MARK_AFTER`` seconds is not
counted that once.
"""

import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from time import sleep  # the real one, also where a test of the user's replaces time.sleep

_MARK_AFTER = 0.02


class Token:
    """A step that has begun and not yet ended."""

    __slots__ = ("due", "ended", "key")

    def __init__(self, key: str, due: float) -> None:
        self.key = key
        self.due = due
        self.ended = False


class Marker:
    """Marks steps that take long as begun, from one thread, which sleeps when there are none."""

    def __init__(self, mark: Callable[[str], None]) -> None:
        self._mark = mark
        self._tokens: deque[Token] = deque()
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    def begun(self, key: str) -> Token:
        """The step that will write the record ``key`` begins; set ``ended`` when it has."""
        token = Token(key, time.monotonic() + _MARK_AFTER)
        was_empty = not self._tokens
        self._tokens.append(token)
        if was_empty:
            with self._wake:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, name="dapr-runners-marker", daemon=True
                    )
                    self._thread.start()
                self._wake.notify()
        return token

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._tokens:
                    self._wake.wait()
            # Tokens are due in the order in which they came: one delay is everybody's.
            pause = self._tokens[0].due - time.monotonic()
            if pause > 0:
                sleep(pause)
            while self._tokens and self._tokens[0].due <= time.monotonic():
                token = self._tokens.popleft()
                if not token.ended:
                    self._mark(token.key)


def process_identity() -> str:
    """Names this process: host, process id and when it began."""
    return f"{socket.gethostname()} {os.getpid()} {_began(os.getpid()) or ''}"


def is_dead(identity: str) -> bool:
    """Whether the process so named is known to be gone. False when it cannot be seen from here."""
    host, pid, began = identity.split(" ")
    if host != socket.gethostname():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    now = _began(int(pid))
    return now is not None and now != began


def _began(pid: int) -> str | None:
    """When a process began, in clock ticks since boot; "gone" for one that has only to be reaped;
    None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return "gone" if fields[0] in ("Z", "X") else fields[19]
