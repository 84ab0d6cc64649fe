"""Clients of the effects service: the test's, and the worker's."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class InjectedError(Exception):
    """What a node raises where a test says so."""


def ask(path: str, **request: Any) -> Any:
    """One request to the service at the socket ``path``."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        sock.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(sock.makefile().readline())


class Outside:
    """The service, seen by a worker in ``case``."""

    def __init__(self, path: str, case: str) -> None:
        self.path = path
        self.case = case

    def report(self, point: str, **more: Any) -> None:
        """Tell that ``point`` is reached, and suffer what the test armed there."""
        answer = ask(self.path, do="report", case=self.case, point=point, pid=os.getpid(), **more)
        if answer == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if answer == "raise":
            raise InjectedError(point)

    def events(self) -> list[dict[str, Any]]:
        """Everything reported, in order."""
        return ask(self.path, do="events", case=self.case)


class Effects:
    """The service, seen by the test, in one ``case``."""

    def __init__(self, path: str, case: str) -> None:
        self.path = path
        self.case = case

    def arm(self, point: str, *actions: str) -> None:
        """What is to happen at the first, second, ... report of ``point``."""
        ask(self.path, do="arm", case=self.case, point=point, actions=list(actions))

    def release(self, point: str) -> None:
        """Answer everyone who is, or will be, held at ``point``."""
        ask(self.path, do="release", case=self.case, point=point)

    def wait(self, point: str, count: int = 1, seconds: float = 60) -> None:
        """Until ``point`` was reported ``count`` times."""
        arguments = {"case": self.case, "point": point, "count": count, "seconds": seconds}
        if not ask(self.path, do="wait", **arguments):
            raise TimeoutError(f"{point} was not reached {count} times: {self.points()}")

    def events(self) -> list[dict[str, Any]]:
        """Everything reported, in order; ``at`` is the service's monotonic clock."""
        return ask(self.path, do="events", case=self.case)

    def points(self) -> list[str]:
        """The points reported, in order."""
        return [event["point"] for event in self.events()]

    def count(self, point: str) -> int:
        """How often ``point`` was reported."""
        return self.points().count(point)


class EffectsService:
    """The service's process."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "effects.sock")
        program = Path(__file__).with_name("effects_service.py")
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", str(program), self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise RuntimeError("the effects service did not start")

    def case(self, name: str) -> Effects:
        """The test's view of a case."""
        return Effects(self.path, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
