"""``dapr-runners events`` and ``show --follow``: a run, seen from a process without its program."""

import json
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from cli_helpers import Bench, command, newest, run, run_json, run_lines
from langgraph.types import Command

from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(240)


def lines_of(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """The events that a command prints, as it does."""
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def seen(lines: Iterator[dict[str, Any]], kind: str) -> dict[str, Any]:
    """The next event of a type."""
    return next(line for line in lines if line["type"] == kind)


async def test_the_events_are_those_of_the_runner(bench: Bench, worker: WorkerProcess) -> None:
    caller = bench.caller("steps")
    seen = [event async for event in caller.run_async({"number": 7}, thread_id="t")]
    again = [event async for event in caller.events(thread_id="t")]
    assert [event["id"] for event in again] == [event["id"] for event in seen]
    assert all(event["replayed"] for event in again)
    told = run_lines("events", newest("steps"))
    assert [(event["type"], event["id"]) for event in told] == [
        (event["type"], event["id"]) for event in seen
    ]
    assert told[0]["thread_id"] == "t"
    assert told[-1]["output"] == {
        "number": 7,
        "log": ["first", "last"],
        "odd": {"type": "cli_graphs.Odd", "number": 7},
    }
    after = run_lines("events", newest("steps"), "--from", seen[3]["id"])
    assert [event["id"] for event in after] == [event["id"] for event in seen[4:]]
    lines = run("events", newest("steps")).splitlines()
    assert [line.split()[0] for line in lines] == [event["type"] for event in seen]
    assert any('step=1 nodes=["first"]' in line for line in lines)


def test_an_event_that_is_not_there(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("steps").invoke({"number": 1}, thread_id="t")
    said = run("events", newest("steps"), "--from", "nonsense", code=3)
    assert "has no event 'nonsense'" in said


def test_a_run_is_followed_over_a_kill(bench: Bench, worker: WorkerProcess) -> None:
    calling = bench.at_the_gate(stream_mode=["updates", "values", "custom"])
    run_id = newest("held")
    so_far = run_lines("events", run_id)
    assert so_far[-1]["type"] == "step_planned"
    with command("events", run_id, "--follow", "--json") as following:
        lines = lines_of(following)
        assert seen(lines, "custom")["data"] == {"said": "at the gate"}
        worker.kill()
        with bench.worker():
            bench.open_gate()
            rest = list(lines)
            assert following.wait() == 0
    calling.result()
    assert rest[-1]["type"] == "workflow_completed"
    assert rest[-1]["output"]["log"] == ["first", "gate", "last"]
    attempts = {e["node"]: e["attempt"] for e in rest if e["type"] == "step_completed"}
    assert attempts == {"gate": 2, "last": 1}


def test_ctrl_c_leaves_a_run_alone(bench: Bench, worker: WorkerProcess) -> None:
    calling = bench.at_the_gate()
    run_id = newest("held")
    with command("events", run_id, "--follow", "--json") as following:
        seen(lines_of(following), "step_completed")
        following.send_signal(signal.SIGINT)
        _, errors = following.communicate()
    assert (following.returncode, errors) == (130, "")
    assert run_json("list")[0]["status"] == "running"
    bench.open_gate()
    assert calling.result()[-1]["log"] == ["first", "gate", "last"]


def test_a_cancelled_run_tells_so_last(bench: Bench, worker: WorkerProcess) -> None:
    bench.at_the_gate()
    run_id = newest("held")
    with command("events", run_id, "--follow", "--json") as following:
        lines = lines_of(following)
        seen(lines, "step_completed")
        run("cancel", run_id)
        assert [line["type"] for line in lines][-1] == "workflow_cancelled"
        assert following.wait() == 0
    assert run_lines("events", run_id)[-1]["type"] == "workflow_cancelled"
    bench.open_gate()


def test_a_failed_run_tells_of_its_error(bench: Bench, worker: WorkerProcess) -> None:
    bench.break_last()
    with pytest.raises(ValueError, match="broken"):
        bench.caller("steps").invoke({}, thread_id="t")
    ended = run_lines("events", newest("steps"))[-1]
    assert ended["type"] == "workflow_failed"
    assert ended["error"]["error_type"] == "ValueError"
    assert ended["error"]["message"] == "the last one is broken"
    shown = run_json("show", newest("steps"))
    assert shown["error"] == "ValueError: the last one is broken"
    errors = [(step["name"], step["status"], step["error"]) for step in shown["steps"]]
    assert errors == [
        ("first", "completed", None),
        ("last", "failed", "ValueError: the last one is broken"),
    ]


def test_steps_are_shown_as_they_end(bench: Bench, worker: WorkerProcess) -> None:
    calling = bench.at_the_gate()
    run_id = newest("held")
    with command("show", run_id, "--follow") as following:
        assert following.stdout is not None
        assert following.stdout.readline().split()[:2] == ["completed", "first"]
        bench.open_gate()
        rest = following.stdout.read().splitlines()
        assert following.wait() == 0
    calling.result()
    assert [line.split()[:2] for line in rest[:2]] == [["completed", "gate"], ["completed", "last"]]
    assert "status            completed" in rest


def test_what_is_asked_is_told(bench: Bench, worker: WorkerProcess) -> None:
    caller = bench.caller("asking")
    caller.invoke({"number": 3}, thread_id="t")
    asked = run_lines("events", newest("asking"))[-1]
    assert asked["type"] == "workflow_interrupted"
    assert [question["value"] for question in asked["interrupts"]] == [{"sure?": 3}]
    caller.invoke(Command(resume="yes"), thread_id="t")
    ended = run_lines("events", newest("asking"))[-1]
    assert ended["output"]["log"] == ["first", "yes", "last"]
