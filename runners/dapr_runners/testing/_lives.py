"""A program, started beside a sidecar of its own until it ends, with an agent in it."""

import json
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.testing._plan import PLAN

_PASSED_ON = ("DAPR_GRPC_ENDPOINT", "DAPR_HTTP_ENDPOINT", "DAPR_RUNTIME_HOST")
"""Variables that would lead the program past its sidecar to another one."""
_OUTPUT_KEPT = 4000


@dataclass(frozen=True)
class Program:
    """How it is started: ``command`` as a shell would, in the folder ``cwd``; ``before`` is a shell
    command that puts back what it leaves outside the sidecar (files, tables), and is run before
    each case; ``timeout`` is how many seconds a life may take."""

    command: Sequence[str]
    cwd: Path = field(default_factory=Path)
    before: str | None = None
    timeout: float = 60.0
    resources_path: Path | None = None

    @property
    def text(self) -> str:
        """The command, as one would type it."""
        return shlex.join(self.command)


@dataclass(frozen=True)
class Life:
    """One process of a program, from its start to its end: ``code`` is None where it was ended
    because it took too long."""

    code: int | None
    output: str
    seconds: float


class Case:
    """A sidecar with an empty database, and lives of the program beside it."""

    def __init__(self, program: Program, directory: Path, sidecar: EmbeddedSidecar) -> None:
        self.program = program
        self.directory = directory
        self.sidecar = sidecar

    def live(
        self,
        at: tuple[str, str, int] | None = None,
        do: str = "kill",
        delay: float = 0.0,
        meanwhile: Callable[["subprocess.Popen[bytes]"], None] = lambda _: None,
    ) -> Life:
        """Start the program and wait for its end. ``at``, ``do`` and ``delay`` are its agent's;
        ``meanwhile`` is called once it runs, with the process."""
        plan = self.directory / "plan.json"
        what = {"log": str(self._log), "at": at, "do": do, "delay": delay, "go": str(self.go)}
        plan.write_text(json.dumps(what))
        environment = {name: value for name, value in os.environ.items() if name not in _PASSED_ON}
        environment |= {**self.sidecar.env(), PLAN: str(plan)}
        began = time.monotonic()
        with (self.directory / "output.txt").open("w+b") as output:
            process = subprocess.Popen(
                self.program.command,
                cwd=self.program.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                meanwhile(process)
                code = process.wait(self.program.timeout)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(process)
            output.seek(0)
            text = output.read().decode(errors="replace")[-_OUTPUT_KEPT:]
        return Life(code, text, time.monotonic() - began)

    @property
    def go(self) -> Path:
        """The file that a held agent waits for."""
        return self.directory / "go"

    @property
    def _log(self) -> Path:
        return self.directory / "log.jsonl"

    def told(self) -> list[dict[str, Any]]:
        """What the agents of all lives have told."""
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End it and what it has started: another life must not find another worker there."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def new_case(program: Program) -> Generator[Case]:
    """A case of its own; its files are gone with the block."""
    with tempfile.TemporaryDirectory(
        prefix="dapr-runners-crash-", ignore_cleanup_errors=True
    ) as name:
        directory = Path(name)
        if program.before is not None:
            subprocess.run(program.before, shell=True, cwd=program.cwd, check=True)
        with EmbeddedSidecar(
            directory / "sidecar.db", resources_path=program.resources_path
        ) as sidecar:
            yield Case(program, directory, sidecar)
