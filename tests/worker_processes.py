"""Worker processes for tests."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

STRICT = ("-W", "error", "-W", "ignore:SelectableGroups dict interface is deprecated")
"""Options of an interpreter in which a warning is an error, but for one of OpenTelemetry's 1.42."""
_PROGRAM = Path(__file__).with_name("worker_program.py")


class WorkerProcess:
    """A process that works on the runners that ``target`` (``module:function``) returns.

    ``folder`` is where the module is; ``variables`` are added to the environment.
    """

    def __init__(
        self, folder: Path, target: str, *arguments: str, variables: Mapping[str, str]
    ) -> None:
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(
            [sys.executable, *STRICT, str(_PROGRAM), target, *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> Self:
        """Return once it works; raises when it ended instead."""
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self._reap()
            raise AssertionError(f"a worker process ended with code {self._process.returncode}")
        return self

    def stop(self) -> None:
        """End it as a deploy does."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reap()

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._reap()

    def _reap(self) -> None:
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Self:
        return self.wait_until_ready()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.returncode is None:
            self.stop()
