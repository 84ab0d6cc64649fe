"""What takes long is shown at the bottom of a terminal, and nowhere else."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dapr_runners.sidecar import EmbeddedSidecar

PROGRAM = """
import asyncio, operator, os, sys, time
from pathlib import Path
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph
from dapr_runners import progress
from dapr_runners.langgraph import DaprWorkflowGraphRunner, StepRetry

class State(TypedDict, total=False):
    x: int

failures = [ConnectionError("no")] if "retry" in sys.argv else []

def long(state: State) -> State:
    if failures:
        raise failures.pop()
    until = time.monotonic() + 3
    while time.monotonic() < until if "three-seconds" in sys.argv else not Path("go").exists():
        time.sleep(0.01)
    return {"x": 1}

builder = StateGraph(State)
builder.add_node("long", long)
builder.add_edge(START, "long")
retry = StepRetry(first_interval=5.0)

async def main() -> None:
    runner = DaprWorkflowGraphRunner(builder.compile(), name="slow", retry=retry)
    runner.connect() if "call" in sys.argv else runner.start()
    events = runner.run_async({"x": 0})
    async for event in progress(events) if "own" in sys.argv else events:
        print(event["type"])
    runner.shutdown()

if "work" in sys.argv:
    DaprWorkflowGraphRunner(builder.compile(), name="slow").serve()
else:
    asyncio.run(main())
"""
RUN = [str(Path(sys.executable).with_name("dapr-runners")), "run", "--"]
pytestmark = pytest.mark.timeout(300)


def on_a_terminal(
    folder: Path, command: list[str], read: Callable[[str], bool], **variables: str
) -> tuple[str, int]:
    """What ``command`` shows on a terminal; ``read`` is told of all of it whenever there is more,
    and ends the node when it says so. And its exit code."""
    (folder / "program.py").write_text(PROGRAM)
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(
        command, cwd=folder, stdin=its, stdout=its, stderr=its, env=environment | variables
    ) as app:
        os.close(its)
        shown = ""
        give_up_at = time.monotonic() + 200
        while time.monotonic() < give_up_at:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    shown += os.read(ours, 65536).decode(errors="replace")
                except OSError:  # the last program on it has ended
                    break
                if read(_plain(shown)):
                    (folder / "go").touch()
        code = app.wait(60)
    os.close(ours)
    return shown, code


def _plain(shown: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


def test_a_long_step_is_shown_while_it_takes_long(tmp_path: Path) -> None:
    command = [*RUN, sys.executable, "program.py"]

    def seconds(text: str) -> set[str]:
        return set(re.findall(r"slow long attempt 1 (\d+)s", text))

    shown, code = on_a_terminal(tmp_path, command, lambda text: len(seconds(text)) > 1)
    assert code == 0
    text = _plain(shown)
    assert "workflow_completed" in text
    # The terminal is left as it was.
    assert shown.rindex("\x1b[r") > shown.rindex("attempt 1")
    assert text.count("slow long") < 60


def test_what_is_waited_for_is_shown(tmp_path: Path) -> None:
    command = [*RUN, sys.executable, "program.py", "retry"]
    shown, code = on_a_terminal(tmp_path, command, lambda text: "long attempt 2" in text)
    assert code == 0
    assert re.search(r"slow \d+s  waits for its time \(in [1-5]s\)", _plain(shown))


def test_a_program_shows_its_own_run(tmp_path: Path) -> None:
    command = [sys.executable, "program.py", "own", "retry"]
    with EmbeddedSidecar(tmp_path / "sidecar.db") as sidecar:
        shown, code = on_a_terminal(
            tmp_path, command, lambda text: "long attempt 2" in text, **sidecar.env()
        )
    assert code == 0
    assert re.search(r"long \d+s  waits for its next attempt \(in [1-5]s\)", _plain(shown))
    assert "workflow_completed" in shown


def test_it_is_shown_that_no_worker_is_there(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "sidecar.db") as sidecar:
        workers: list[subprocess.Popen[bytes]] = []

        def work() -> None:
            command = [sys.executable, "program.py", "work"]
            environment = os.environ | sidecar.env()
            workers.append(subprocess.Popen(command, cwd=tmp_path, env=environment))

        def read(text: str) -> bool:
            if not workers and re.search(r"… \d+s  waits for a worker", text):
                work()  # nobody has scheduled it until then
            elif len(workers) == 1 and "slow long attempt 1 2s" in text:
                workers[0].kill()
                workers[0].wait()
            if len(workers) == 1 and re.search(r"slow long \d+s  waits for a worker", text):
                work()
            return len(workers) == 2

        command = [sys.executable, "program.py", "own", "call"]
        try:
            shown, code = on_a_terminal(tmp_path, command, read, **sidecar.env())
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
    assert code == 0, shown
    assert len(workers) == 2
    assert "workflow_completed" in shown


def test_a_run_that_nobody_starts_is_shown_beside_a_sidecar(tmp_path: Path) -> None:
    command = [*RUN, sys.executable, "program.py", "call"]
    workers: list[subprocess.Popen[bytes]] = []

    def read(text: str) -> bool:
        port = re.search(r"gRPC (\d+)", text)
        if not workers and port and re.search(r"slow \d+s  waits for a worker", text):
            environment = {**os.environ, "DAPR_GRPC_PORT": port[1]}
            worker = [sys.executable, "program.py", "work"]
            workers.append(subprocess.Popen(worker, cwd=tmp_path, env=environment))
        return bool(workers)

    try:
        shown, code = on_a_terminal(tmp_path, command, read)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert code == 0, shown
    assert workers


def test_it_is_shown_once(tmp_path: Path) -> None:
    command = [*RUN, sys.executable, "program.py", "own"]
    shown, code = on_a_terminal(
        tmp_path, command, lambda text: bool(re.search(r"long attempt 1 ([2-9]|\d\d+)s", text))
    )
    assert code == 0
    # A program that shows it too would make room for a line of its own.
    assert len(re.findall(r"\x1b\[1;\d+r", shown)) == 1


@pytest.mark.parametrize("own", [True, False])
def test_nothing_is_shown_where_there_is_no_terminal(own: bool, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "program.py", "three-seconds"]
    with EmbeddedSidecar(tmp_path / "sidecar.db") as sidecar:
        done = subprocess.run(
            [*command, "own"] if own else [*RUN, *command],
            cwd=tmp_path,
            env=os.environ | sidecar.env() if own else None,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "workflow_completed" in done.stdout
    assert "attempt" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
