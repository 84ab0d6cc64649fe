"""The commands in processes, and workers to look at."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cli_graphs
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from dapr_runners.engine import RunCancelledError
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from engines import Sidecar
from worker_processes import WorkerProcess

_PATIENCE = 60.0
_PROGRAM = Path(sys.executable).with_name("dapr-runners")


def run(*arguments: str, code: int = 0) -> str:
    """What a command prints; it has to exit with ``code``, and without a traceback."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output


def run_json(*arguments: str) -> Any:
    """What a command prints as JSON."""
    return json.loads(run(*arguments, "--json"))


def run_lines(*arguments: str) -> list[dict[str, Any]]:
    """The lines of JSON that a command prints."""
    return [json.loads(line) for line in run(*arguments, "--json").splitlines()]


@contextmanager
def command(
    *arguments: str, stdin: int = subprocess.DEVNULL, **variables: str
) -> "Iterator[subprocess.Popen[str]]":
    """A command in a process of its own."""
    process = subprocess.Popen(
        [str(_PROGRAM), *arguments],
        env={**os.environ, "PYTHONUNBUFFERED": "1", **variables},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so in another process."""
    give_up_at = time.monotonic() + _PATIENCE
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


@dataclass
class Bench:
    """A sidecar, whose graphs are worked on by processes, and called from here."""

    sidecar: Sidecar
    folder: Path
    pool: ThreadPoolExecutor
    _callers: dict[str, DaprWorkflowGraphRunner] = field(default_factory=dict)

    def worker(self) -> WorkerProcess:
        """A process that works on all graphs."""
        variables = {**self.sidecar.env(), cli_graphs.FOLDER: str(self.folder)}
        target = "cli_graphs:make_all"
        return WorkerProcess(Path(__file__).parent, target, variables=variables)

    def caller(self, name: str) -> DaprWorkflowGraphRunner:
        """A runner that only calls."""
        if name not in self._callers:
            self._callers[name] = cli_graphs.make(name, self.sidecar.grpc_port)
            self._callers[name].connect()
        return self._callers[name]

    def close(self) -> None:
        for runner in self._callers.values():
            runner.shutdown()
            runner.store.close()

    def at_the_gate(self, stream_mode: Any = "values") -> "Future[list[Any]]":
        """A run of the graph "held" whose node at the gate has begun; what is streamed of it."""
        config = {"configurable": {"thread_id": "t"}}
        stream = self.caller("held").stream
        calling = self.pool.submit(lambda: list(stream({}, config, stream_mode=stream_mode)))
        until(lambda: "gate" in self.worked())
        return calling

    def worked(self) -> list[str]:
        """The nodes that have begun."""
        file = self.folder / "worked"
        return file.read_text().split() if file.exists() else []

    def open_gate(self) -> None:
        """Let the node at the gate go on."""
        with (self.folder / "gate").open("w") as pipe:
            pipe.write("open")

    def break_last(self, broken: bool = True) -> None:
        """Have the node ``last`` fail, or work again."""
        if broken:
            (self.folder / "broken").touch()
        else:
            (self.folder / "broken").unlink()


def newest(name: str) -> str:
    """The id of the newest run of a runner."""
    return run_json("list", "--runner", name)[0]["run_id"]


@contextmanager
def held_up(bench: Bench) -> Iterator[str]:
    """A run that waits for a receiver of messages that is not there."""

    def call() -> None:
        with suppress(RunCancelledError):
            bench.caller("telling").invoke({}, thread_id="t")

    calling = threading.Thread(target=call)
    calling.start()
    until(lambda: "held up" in run("list"))
    yield newest("telling")
    run("cancel", newest("telling"))
    calling.join()
