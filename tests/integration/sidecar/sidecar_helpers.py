"""Helpers of the sidecar's tests: ways to wait, and worker processes to kill."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import grpc
from dapr.ext.workflow import DaprWorkflowClient

_PATIENCE = 60.0

Run = Callable[..., tuple[str, Any]]
"""The ``run`` fixture: runs a workflow to its end, and returns its status and output."""

NewId = Callable[[], str]
"""The ``new_id`` fixture: makes instance ids nobody else uses."""


class Endpoint(Protocol):
    """The ``endpoint`` fixture: a running sidecar, of whatever kind."""

    grpc_port: int
    http_port: int

    @property
    def address(self) -> str: ...


def eventually(condition: Callable[[], Any], what: str = "it") -> Any:
    """The first true value of ``condition``, which is asked again and again."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what} did not happen within {_PATIENCE:.0f} s")


def finished(client: DaprWorkflowClient, instance_id: str) -> tuple[str, str | None]:
    """Status and output of an instance when it is over. Polls, which works across restarts."""

    def over() -> Any:
        try:
            state = client.get_workflow_state(instance_id)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                return None
            raise
        names = ("COMPLETED", "FAILED", "TERMINATED")
        return state if state is not None and state.runtime_status.name in names else None

    state = eventually(over, f"the end of {instance_id}")
    return state.runtime_status.name, state.serialized_output


def reaches(client: DaprWorkflowClient, instance_id: str, status: str) -> Any:
    """The state of an instance once it has that status."""

    def there() -> Any:
        state = client.get_workflow_state(instance_id)
        return state if state is not None and state.runtime_status.name == status else None

    return eventually(there, f"status {status} of {instance_id}")


def lines(path: Path) -> list[str]:
    """What the ``journal`` activity has written so far."""
    return path.read_text().splitlines() if path.exists() else []


class WorkerProcess:
    """A worker in a process of its own, up when made."""

    def __init__(self, grpc_port: int) -> None:
        script = Path(__file__).with_name("sidecar_worker.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), str(grpc_port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"up\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
