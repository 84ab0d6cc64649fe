"""The embedded sidecar as a child process of a test or a development command."""

import json
import os
import subprocess  # nosec B404 # for this Python, see below
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dapr_runners.sidecar._health import WORK_PATH
from dapr_runners.sidecar.errors import SidecarStartError

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_ANSWER_SECONDS = 5.0


class EmbeddedSidecar:
    """A sidecar of its own on the database at ``path``, ended with the process that made it.

    A port of 0 takes a free one, and keeps it over restarts of the same object: workers and
    clients then find the sidecar again. ``resources_path`` is a directory of component files;
    without one there is a single state store, ``statestore``.

        with EmbeddedSidecar(tmp_path / "sidecar.db") as sidecar:
            client = DaprWorkflowClient(host="127.0.0.1", port=str(sidecar.grpc_port))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        grpc_port: int = 0,
        http_port: int = 0,
        api_token: str | None = None,
        app_id: str = "runner",
        resources_path: str | os.PathLike[str] | None = None,
        config: str | os.PathLike[str] | None = None,
        max_body_size: int | str | None = None,
        log_level: str = "warning",
    ) -> None:
        self.path = Path(path)
        self.grpc_port = grpc_port
        self.http_port = http_port
        self.api_token = api_token
        self.app_id = app_id
        self._resources_path = resources_path
        self._config = config
        self._max_body_size = max_body_size
        self._log_level = log_level
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """``host:port`` of the gRPC endpoint."""
        return f"127.0.0.1:{self.grpc_port}"

    def work_under_way(self) -> list[dict[str, Any]]:
        """What its workflows are at: see ``_work_api``. Raises OSError while it is away."""
        headers = {} if self.api_token is None else {"dapr-api-token": self.api_token}
        connection = HTTPConnection("127.0.0.1", self.http_port, timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", WORK_PATH, headers=headers)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None else None

    def env(self) -> dict[str, str]:
        """The variables a program needs to find this sidecar."""
        variables = {
            "APP_ID": self.app_id,
            "DAPR_GRPC_PORT": str(self.grpc_port),
            "DAPR_HTTP_PORT": str(self.http_port),
        }
        if self.api_token is not None:
            variables["DAPR_API_TOKEN"] = self.api_token
        return variables

    def start(self) -> Self:
        """Start it and return once it serves; raises :class:`SidecarStartError`."""
        if self._process is not None:
            raise self._error("It is running already.")
        process = subprocess.Popen(  # nosec B603 # this Python and this package
            self._command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment(),
            # Ctrl-C in a terminal is for the program; it decides when its sidecar ends.
            start_new_session=True,
        )
        # Reading blocks, so it is given up by killing what is read from.
        timer = threading.Timer(_START_SECONDS, process.kill)
        timer.start()
        assert process.stdout is not None
        line = process.stdout.readline()
        timer.cancel()
        ready: dict[str, Any] = json.loads(line) if line else {}
        if "grpc_port" not in ready:
            _reap(process)
            raise self._error(ready.get("error", self._by_hand(process.returncode)))
        self.grpc_port = ready["grpc_port"]
        self.http_port = ready["http_port"]
        self._process = process
        return self

    def stop(self) -> None:
        """End it cleanly."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        _reap(process)

    def kill(self) -> None:
        """End it as a crash does, with SIGKILL."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            _reap(process)

    def restart(self) -> Self:
        """Stop it and start it again on the same database and ports."""
        self.stop()
        return self.start()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it ends by itself; its exit code, or None after ``timeout`` seconds."""
        if self._process is None:
            return None
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def __enter__(self) -> Self:
        return self if self._process is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "dapr_runners.sidecar", "--watch-stdin"]
        command += ["--database", str(self.path), "--app-id", self.app_id]
        command += ["--dapr-grpc-port", str(self.grpc_port)]
        command += ["--dapr-http-port", str(self.http_port), "--log-level", self._log_level]
        if self._resources_path is not None:
            command += ["--resources-path", os.fspath(self._resources_path)]
        if self._config is not None:
            command += ["--config", os.fspath(self._config)]
        if self._max_body_size is not None:
            command += ["--max-body-size", str(self._max_body_size)]
        return command

    def _environment(self) -> dict[str, str]:
        environment = {key: value for key, value in os.environ.items() if key != "DAPR_API_TOKEN"}
        if self.api_token is not None:
            # Not as an argument: those are there for everybody to read.
            environment["DAPR_API_TOKEN"] = self.api_token
        return environment

    def _by_hand(self, code: int) -> str:
        return (
            f"It ended with code {code}. Start it by hand to see more: `python -m"
            f" dapr_runners.sidecar --database {self.path}`."
        )

    def _error(self, detail: str) -> SidecarStartError:
        return SidecarStartError(database=str(self.path), detail=detail)


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
