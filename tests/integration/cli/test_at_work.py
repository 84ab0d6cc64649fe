"""What ``show`` says of steps that are at work, lost, to come, and left."""

import json
import time
from datetime import datetime

import pytest
from cli_helpers import Bench, newest, run, run_json, until

from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(300)


def steps_of(run_id: str) -> dict[str, tuple[str, int]]:
    """Status and attempt of each step, by its name: the last attempts."""
    return {each["name"]: (each["status"], each["attempt"]) for each in shown(run_id)}


def shown(run_id: str) -> list[dict[str, object]]:
    return run_json("show", run_id)["steps"]


def test_a_step_at_work_is_told_from_those_to_come(bench: Bench, worker: WorkerProcess) -> None:
    began_after = time.time()
    calling = bench.at_the_gate()
    held = newest("held")
    until(lambda: steps_of(held)["gate"] == ("working", 1))  # its mark is written a moment later
    assert steps_of(held) == {"first": ("completed", 1), "gate": ("working", 1)}
    gate = shown(held)[-1]
    assert gate["ended"] is None
    began = datetime.fromisoformat(str(gate["began"])).timestamp()
    assert began_after < began < time.time()
    assert "working      gate                      attempt 1" in run("show", held)
    worker.kill()
    assert steps_of(held)["gate"] == ("lost", 1)
    with bench.worker():
        until(lambda: steps_of(held)["gate"] == ("working", 2))
        bench.open_gate()
        assert calling.result()[-1]["log"] == ["first", "gate", "last"]
    assert steps_of(held)["gate"] == ("completed", 2)


def test_a_step_that_its_run_ended_without_is_left(bench: Bench, worker: WorkerProcess) -> None:
    bench.at_the_gate()
    held = newest("held")
    run("cancel", held)
    assert steps_of(held)["gate"] == ("left", 0)
    bench.open_gate()


def test_a_subgraph_is_over_when_what_is_inside_is(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("paying").invoke({}, thread_id="t")
    paying = newest("paying")
    names = ("first", "pay", "beside", "inner/last", "inner")
    assert steps_of(paying) == dict.fromkeys(names, ("completed", 1))
    followed = [json.loads(line) for line in run("show", paying, "--follow", "--json").splitlines()]
    assert [each["name"] for each in followed[:-1]].count("inner") == 1
    assert {each["step_id"] for each in followed[:-1]} == {
        each["step_id"] for each in shown(paying)
    }


def test_what_mends_a_failed_step_is_a_step(bench: Bench, worker: WorkerProcess) -> None:
    bench.break_last()
    bench.caller("mending").invoke({}, thread_id="t")
    steps = shown(newest("mending"))
    assert sorted(str(each["status"]) for each in steps) == ["completed", "completed", "failed"]
    assert len({each["name"] for each in steps}) == 3
    followed = run("show", newest("mending"), "--follow", "--json").splitlines()
    assert {json.loads(line)["step_id"] for line in followed[:-1]} == {
        each["step_id"] for each in steps
    }
