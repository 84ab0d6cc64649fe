"""The demo's child processes. What they print arrives in one queue, in order of arrival."""

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dapr_runners.sidecar import EmbeddedSidecar

HERE = Path(__file__).parent
PATIENCE_SECONDS = 120.0

Inbox = queue.Queue[tuple[str, dict[str, Any]]]


@contextmanager
def sidecar_env() -> Iterator[dict[str, str]]:
    """The variables that lead to the sidecar: the one of the environment, or an embedded one."""
    if "DAPR_GRPC_PORT" in os.environ:
        yield {}
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedSidecar(Path(folder) / "sidecar.db") as sidecar,
    ):
        yield sidecar.env()


class Child:
    """A Python program of this folder; each JSON line it prints goes to ``inbox`` with ``kind``."""

    def __init__(self, kind: str, inbox: Inbox, *arguments: str, env: dict[str, str]) -> None:
        self.kind = kind
        self._inbox = inbox
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / arguments[0]), *arguments[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: no handler, no clean-up, nothing flushed."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def end(self) -> int:
        """Close its stdin and wait for it; its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):  # a library may print something of its own
                self._inbox.put((self.kind, json.loads(line)))
        self._inbox.put((self.kind, {"type": "exit"}))


@contextmanager
def child(kind: str, inbox: Inbox, *arguments: str, env: dict[str, str]) -> Iterator[Child]:
    """A :class:`Child` that does not outlive the block."""
    made = Child(kind, inbox, *arguments, env=env)
    try:
        yield made
    finally:
        made.kill()
