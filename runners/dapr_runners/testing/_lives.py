"""A program, started beside a sidecar of its own until it ends, with an agent in it."""

import json
import os
import shlex
import signal
import subprocess  # nosec B404 # runs the program under test, see below
import tempfile
import time
from collections.abc import Generator, Sequence
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


class Running:
    """A process of a program; :meth:`end` waits for it."""

    def __init__(self, program: Program, environment: dict[str, str], output: Path) -> None:
        self._timeout = program.timeout
        self._output = output
        self._began = time.monotonic()
        with output.open("wb") as file:
            self._process = subprocess.Popen(  # nosec B603 # the program under test
                program.command,
                cwd=program.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def signal(self, number: signal.Signals) -> None:
        """Send it to the process, and to what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def wait(self) -> int | None:
        """Its exit code; None when it takes too long."""
        try:
            return self._process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> Life:
        """Wait for its end, or end it when it takes too long. What it has started is ended, too:
        another life must not find another worker there."""
        try:
            code = self.wait()
        finally:
            self.signal(signal.SIGKILL)
            self._process.wait()
        text = self._output.read_bytes().decode(errors="replace")[-_OUTPUT_KEPT:]
        return Life(code, text, time.monotonic() - self._began)


class Case:
    """A sidecar with an empty database, and lives of the program beside it. ``grpc_port`` is where
    the program is to find it."""

    def __init__(self, program: Program, directory: Path, sidecar: EmbeddedSidecar) -> None:
        self.program = program
        self.sidecar = sidecar
        self.grpc_port = sidecar.grpc_port
        self._directory = directory
        self._log, self._go = directory / "log.jsonl", directory / "go"
        self._count = 0

    def start(
        self, at: tuple[str, str, int] | None = None, do: str = "kill", delay: float = 0.0
    ) -> Running:
        """Start the program. ``at``, ``do`` and ``delay`` are its agent's."""
        self._count += 1
        plan = self._directory / f"plan-{self._count}.json"
        what = {"log": str(self._log), "at": at, "do": do, "delay": delay, "go": str(self._go)}
        plan.write_text(json.dumps(what))
        environment = {name: value for name, value in os.environ.items() if name not in _PASSED_ON}
        environment |= self.sidecar.env()
        environment |= {"DAPR_GRPC_PORT": str(self.grpc_port), PLAN: str(plan)}
        return Running(self.program, environment, self._directory / f"output-{self._count}.txt")

    def live(
        self, at: tuple[str, str, int] | None = None, do: str = "kill", delay: float = 0.0
    ) -> Life:
        """:meth:`start`, and wait for the end."""
        return self.start(at, do, delay).end()

    def wait_until_told(self, running: Running, what: str, times: int = 1) -> bool:
        """Whether agents told of ``what`` so often; False when the process ended before."""
        end = time.monotonic() + self.program.timeout
        while not running.is_over and time.monotonic() < end:
            if sum(what in one for one in self.told()) >= times:
                return True
            time.sleep(0.02)
        return False

    def release(self, how: str = "") -> None:
        """Let an agent go on that holds its program."""
        beside = self._go.with_suffix(".new")
        beside.write_text(how)
        beside.replace(self._go)

    def told(self) -> list[dict[str, Any]]:
        """What the agents of all lives have told."""
        if not self._log.exists():
            return []
        whole = self._log.read_text().rpartition("\n")[0]  # the last line may be on its way
        return [json.loads(line) for line in whole.splitlines()]


@contextmanager
def new_case(program: Program) -> Generator[Case]:
    """A case of its own; its files are gone with the block."""
    with tempfile.TemporaryDirectory(
        prefix="dapr-runners-crash-", ignore_cleanup_errors=True
    ) as name:
        directory = Path(name)
        if program.before is not None:
            # A line of shell is what the option takes, from whoever runs the test.
            subprocess.run(program.before, shell=True, cwd=program.cwd, check=True)  # nosec B602
        with EmbeddedSidecar(
            directory / "sidecar.db", resources_path=program.resources_path
        ) as sidecar:
            yield Case(program, directory, sidecar)
