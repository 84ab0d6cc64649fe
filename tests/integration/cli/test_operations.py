"""``dapr-runners list``, ``show`` and ``cancel``, which know nothing of the program."""

import json
import operator
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt
from typer.testing import CliRunner
from typing_extensions import TypedDict

from dapr_runners.cli._app import app
from dapr_runners.effects import effect
from dapr_runners.engine import RunCancelledError
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from engines import Sidecar

pytestmark = pytest.mark.timeout(240)


@dataclass
class Odd:
    """A class that the commands have never heard of."""

    number: int


class Holding(TypedDict, total=False):
    odd: Odd


class State(TypedDict, total=False):
    number: int
    done: Annotated[list[int], operator.add]


@effect
def charge(cents: int) -> int:
    return cents


def _plan(state: State) -> State:
    if state["number"] < 0:
        raise ValueError("too small")
    return {"done": [charge(state["number"])]}


def _inner() -> Any:
    builder = StateGraph(State)
    builder.add_node("ask", lambda state: {"done": [interrupt("sure?")]})
    builder.add_edge(START, "ask")
    return builder.compile()


def _graph() -> Any:
    builder = StateGraph(State)
    builder.add_node("plan", _plan)
    builder.add_node("work", lambda state: {"done": [state["number"]]})
    builder.add_node("sub", _inner())
    builder.add_edge(START, "plan")
    spread = lambda state: [Send("work", {"number": each}) for each in range(2)]  # noqa: E731
    builder.add_conditional_edges("plan", spread, ["work"])
    builder.add_conditional_edges(
        "work", lambda state: "sub" if state["number"] == 7 else END, ["sub", END]
    )
    return builder.compile()


@pytest.fixture
def runner(sidecar: Sidecar) -> Iterator[DaprWorkflowGraphRunner]:
    runner = DaprWorkflowGraphRunner(_graph(), name="counting", port=sidecar.grpc_port)
    runner.start()
    yield runner
    runner.shutdown()


def _run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def _listed(*options: str) -> list[dict[str, Any]]:
    return json.loads(_run("list", "--json", *options))


def _steps(run: str) -> list[tuple[str, str, int]]:
    shown = json.loads(_run("show", run, "--json"))
    return [(step["name"], step["status"], step["attempt"]) for step in shown["steps"]]


def test_runs_are_listed_the_newest_first(runner: DaprWorkflowGraphRunner) -> None:
    for number in range(3):
        runner.invoke({"number": number}, thread_id=f"t{number}")
    found = _listed()
    assert [run["thread"] for run in found] == ["t2", "t1", "t0"]
    assert {(run["runner"], run["status"]) for run in found} == {("counting", "completed")}
    assert [run["thread"] for run in _listed("--limit", "1")] == ["t2"]
    assert [run["thread"] for run in _listed("--thread", "t1")] == ["t1"]
    assert _listed("--status", "running") == []
    assert _listed("--runner", "other") == []
    lines = _run("list").splitlines()
    assert [line.split()[0] for line in lines] == [run["run_id"] for run in found]


def test_a_status_there_is_not(sidecar: Sidecar) -> None:
    result = CliRunner().invoke(app, ["list", "--status", "Runing"])
    assert result.exit_code == 2
    assert "held up" in result.output


def test_the_steps_of_a_run(runner: DaprWorkflowGraphRunner) -> None:
    runner.invoke({"number": 7}, thread_id="asks")
    (run,) = _listed()
    assert run["status"] == "interrupted"
    shown = json.loads(_run("show", run["run_id"], "--json"))
    names = [(step["name"], step["status"]) for step in shown["steps"]]
    assert names[:3] == [("plan", "completed"), ("work", "completed"), ("work", "completed")]
    assert ("sub/ask", "interrupted") in names
    plan = shown["steps"][0]
    (charged,) = plan["effects"]
    assert [charged[name] for name in ("effect", "status", "attempt")] == ["charge", "succeeded", 1]
    assert plan["began"] <= plan["ended"] <= shown["steps"][1]["ended"]
    text = _run("show", run["run_id"])
    assert "effect charge" in text
    assert "thread            asks" in text


def test_a_run_that_failed(runner: DaprWorkflowGraphRunner) -> None:
    with pytest.raises(ValueError, match="too small"):
        runner.invoke({"number": -1}, thread_id="bad")
    (run,) = _listed("--status", "failed")
    assert _steps(run["run_id"]) == [("plan", "failed", 1)]


def test_a_run_is_cancelled(sidecar: Sidecar) -> None:
    entered, gate = Event(), Event()

    def wait(state: Holding) -> Holding:
        entered.set()
        assert gate.wait(60)
        return {}

    builder = StateGraph(Holding)
    builder.add_node("wait", wait)
    builder.add_edge(START, "wait")
    options: Any = {"name": "waiting", "port": sidecar.grpc_port, "allow_types": [Odd]}
    runner = DaprWorkflowGraphRunner(builder.compile(), **options)
    with runner, ThreadPoolExecutor(1) as pool:
        calling = pool.submit(runner.invoke, {"odd": Odd(1)}, thread_id="t")
        assert entered.wait(60)
        (run,) = _listed("--status", "running")
        give_up_at = time.monotonic() + 60
        while _steps(run["run_id"]) == [("wait", "planned", 0)]:  # marked a moment later
            assert time.monotonic() < give_up_at
        assert _steps(run["run_id"]) == [("wait", "working", 1)]
        assert _run("cancel", run["run_id"]) == f"{run['run_id']} is cancelled.\n"
        with pytest.raises(RunCancelledError):
            calling.result()
        gate.set()
        assert [each["status"] for each in _listed()] == ["cancelled"]


@pytest.mark.parametrize("command", ["show", "cancel", "events"])
def test_a_run_that_is_not_there(sidecar: Sidecar, command: str) -> None:
    result = CliRunner().invoke(app, [command, "no-such-run"])
    assert result.exit_code == 3
    assert "no-such-run" in result.output


def test_no_sidecar(sidecar: Sidecar, caplog: pytest.LogCaptureFixture) -> None:
    sidecar.stop()
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 4
    assert caplog.record_tuples == []
    assert f"No Dapr sidecar answers at {sidecar.address}" in result.output
