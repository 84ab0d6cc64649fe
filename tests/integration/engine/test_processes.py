"""Callers and workers in processes of their own."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
from engine_graphs import WORKED, make
from langgraph.types import Command
from run_helpers import collect

from dapr_runners.langgraph import DaprWorkflowGraphRunner
from engines import Engine, Sidecar
from worker_processes import WorkerProcess

FOLDER = Path(__file__).parent
Caller: TypeAlias = Callable[[str], DaprWorkflowGraphRunner]


def worker_of(sidecar: Sidecar, folder: Path) -> WorkerProcess:
    """A process that works on all graphs."""
    variables = {**sidecar.env(), WORKED: str(folder / "worked")}
    return WorkerProcess(FOLDER, "engine_graphs:make_all", variables=variables)


@contextmanager
def callers_of(sidecar: Sidecar) -> Iterator[Caller]:
    """Connects runners that only call."""
    connected: list[DaprWorkflowGraphRunner] = []

    def connect(name: str) -> DaprWorkflowGraphRunner:
        connected.append(make(name, sidecar.grpc_port))
        connected[-1].connect()
        return connected[-1]

    yield connect
    for runner in connected:
        runner.shutdown()
        runner.store.close()


@pytest.fixture(scope="module")
def shared(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sidecar, set[int]]]:
    """A sidecar with two worker processes, and their ids."""
    folder = tmp_path_factory.mktemp("processes")
    with (
        engine.sidecar(folder) as sidecar,
        worker_of(sidecar, folder) as one,
        worker_of(sidecar, folder) as two,
    ):
        yield sidecar, {one.pid, two.pid}


@pytest.fixture
def workers(shared: tuple[Sidecar, set[int]]) -> set[int]:
    """Ids of the worker processes."""
    return shared[1]


@pytest.fixture
def caller(shared: tuple[Sidecar, set[int]]) -> Iterator[Caller]:
    with callers_of(shared[0]) as connect:
        yield connect


def test_a_caller_does_not_work(caller: Caller, workers: set[int]) -> None:
    runner = caller("who")
    assert not runner.is_running
    for x in range(4):
        log = runner.invoke({"x": x}, thread_id=f"{x}")["log"]
        assert log[0] in workers
        assert log[1:] == ["last"]
    assert os.getpid() not in workers


async def test_a_caller_sees_all_events(caller: Caller, workers: set[int]) -> None:
    events = await collect(caller("who").run_async({"x": 1}, thread_id="events"))
    kinds = [event["type"] for event in events if event["type"] not in ("updates", "values")]
    assert kinds == [
        "workflow_started",
        "step_planned",
        "step_completed",
        "step_planned",
        "step_completed",
        "workflow_completed",
    ]
    assert events[-1]["output"]["log"][0] in workers


def test_a_caller_cancels_and_purges(caller: Caller, workers: set[int]) -> None:
    runner = caller("asking")
    runner.invoke({"x": 1}, thread_id="t")
    runner.cancel(thread_id="t")
    runner.purge(thread_id="t")
    assert runner.get_state({"configurable": {"thread_id": "t"}}).next == ("ask",)


def test_an_interrupted_run_waits_with_nothing_running(engine: Engine, tmp_path: Path) -> None:
    thread = {"configurable": {"thread_id": "t"}}
    with engine.sidecar(tmp_path) as sidecar:
        with worker_of(sidecar, tmp_path) as first, callers_of(sidecar) as connect:
            asked = connect("asking").invoke({"x": 1}, thread)
            assert [question.value for question in asked["__interrupt__"]] == ["go on?"]
            first.kill()
        sidecar.kill()
        sidecar.start()
        with worker_of(sidecar, tmp_path), callers_of(sidecar) as connect:
            runner = connect("asking")
            assert runner.get_state(thread).next == ("ask",)
            result = runner.invoke(Command(resume="yes"), thread)
    assert result == {"x": 1, "log": [first.pid, "yes", "beside", "last"]}
    assert (tmp_path / "worked").read_text().split() == [str(first.pid)]
