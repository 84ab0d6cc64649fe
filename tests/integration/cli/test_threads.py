"""A run, named by its thread in place of its id."""

import json

import pytest
from cli_helpers import Bench, newest, run, run_json, run_lines

from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(300)


def test_what_reads_a_run_takes_its_thread(bench: Bench, worker: WorkerProcess) -> None:
    caller = bench.caller("steps")
    for number in range(2):
        caller.invoke({"number": number}, thread_id="t")
    second = newest("steps")
    assert second != run_json("list")[1]["run_id"]
    assert run_json("show", "--thread", "t")["run_id"] == second
    assert f"run_id            {second}" in run("show", "--thread", "t", "--follow")
    for command in ("events", "logs"):
        assert {each["workflow_id"] for each in run_lines(command, "--thread", "t")} == {second}
    assert json.loads(run("export", "--thread", "t"))["run"]["run_id"] == second
    assert run_json("dead-letter", "decisions", "--thread", "t") == []


def test_a_thread_that_several_runners_have(bench: Bench, worker: WorkerProcess) -> None:
    for name in ("steps", "asking"):
        bench.caller(name).invoke({}, thread_id="t")
    commands = [
        ["show"],
        ["events"],
        ["logs"],
        ["export"],
        ["dead-letter", "decisions"],
        ["reconcile", "--why", "it is back"],
        ["answer", "key", "value"],
    ]
    for command in commands:
        said = run(*command, "--thread", "t", code=2)
        assert "Several runners have runs of the thread or session 't': asking, steps" in said
    assert run_json("show", "--thread", "t", "--runner", "asking")["runner"] == "asking"
    assert "no run" in run("show", "--thread", "other", code=3)
    for command in (["show"], ["events", "x", "--thread", "t"], ["export"]):
        assert "one of RUN and --thread" in run(*command, code=2)
