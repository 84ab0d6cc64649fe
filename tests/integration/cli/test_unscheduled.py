"""Runs that no worker was there to schedule: they are recorded, and looked at like others."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from cli_helpers import Bench, newest, run, run_json, run_lines, until

from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(300)
_WORKER = ["a worker to begin it"]


def test_a_run_that_waits_for_a_worker_is_seen(bench: Bench) -> None:
    before = datetime.now(UTC)
    calling = bench.pool.submit(bench.caller("steps").invoke, {"number": 7}, thread_id="t")
    until(lambda: run_json("list") != [])
    (waiting,) = run_json("list", "--thread", "t", "--runner", "steps", "--status", "pending")
    assert [waiting[name] for name in ("runner", "thread", "status", "waits_for")] == [
        "steps",
        "t",
        "pending",
        _WORKER,
    ]
    assert before < datetime.fromisoformat(waiting["created_at"]) < datetime.now(UTC)
    assert "pending" in run("list")
    assert "a worker to begin it" in run("list")
    assert run_json("list", "--older", "1h") == []
    assert run_json("list", "--newer", "1h") == [waiting]
    assert run_json("list", "--runner", "held") == run_json("list", "--status", "running") == []
    for named in (["--thread", "t"], [waiting["run_id"]]):
        shown = run_json("show", *named)
        assert [shown.pop(name) for name in ("steps", "questions", "held_up")] == [[], [], []]
        assert shown == waiting
    assert "waits_for         a worker to begin it" in run("show", waiting["run_id"])
    assert [e["type"] for e in run_lines("events", "--thread", "t")] == ["workflow_started"]
    exported = json.loads(run("export", "--thread", "t"))
    assert exported["run"]["status"] == "pending"
    assert "start a program that calls start()" in run("resume", "--thread", "t", code=5)
    with bench.worker():
        assert calling.result()["log"] == ["first", "last"]
        until(lambda: run_json("list")[0]["status"] == "completed")
    (ended,) = run_json("list")
    assert ended["run_id"] == waiting["run_id"]


def test_those_that_wait_are_listed_among_the_others(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("steps").invoke({}, thread_id="first")
    worker.kill()
    bench.pool.submit(bench.caller("steps").invoke, {}, thread_id="second")
    until(lambda: len(run_json("list")) == 2)
    assert [run["thread"] for run in run_json("list")] == ["second", "first"]
    assert [run["thread"] for run in run_json("list", "--limit", "1", "--page", "2")] == ["first"]


def test_one_that_waits_is_cancelled_and_purged(bench: Bench) -> None:
    bench.pool.submit(bench.caller("steps").invoke, {}, thread_id="t")
    until(lambda: run_json("list") != [])
    waiting = newest("steps")
    assert run("cancel", "--thread", "t") == f"{waiting} is cancelled.\n"
    assert run_json("show", waiting)["status"] == "cancelled"
    assert run("purge", "--thread", "t", "--yes") == f"{waiting} is purged.\n"
    assert run_json("list") == []
    run("show", waiting, code=3)


def test_a_thread_whose_newest_run_was_purged(bench: Bench, worker: WorkerProcess) -> None:
    for number in range(3):
        bench.caller("steps").invoke({"number": number}, thread_id="t")
    runs = [each["run_id"] for each in run_json("list", "--thread", "t")]
    assert len(runs) == 3
    for left in (2, 1):
        run("purge", "--thread", "t", "--yes")
        assert [each["run_id"] for each in run_json("list", "--thread", "t")] == runs[-left:]
        for runner in ([], ["--runner", "steps"]):
            assert run_json("show", "--thread", "t", *runner)["run_id"] == runs[-left]
    run("purge", "--thread", "t", "--yes")
    assert "no run" in run("show", "--thread", "t", code=3)
    assert "no run" in run("show", "--thread", "t", "--runner", "steps", code=3)
    bench.caller("steps").invoke({"number": 9}, thread_id="t")
    assert timedelta(0) == datetime.fromisoformat(run_json("list")[0]["created_at"]).utcoffset()
