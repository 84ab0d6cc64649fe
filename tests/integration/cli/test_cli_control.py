"""``dapr-runners answer``, ``suspend``, ``resume``, ``terminate`` and ``purge``."""

import os
import pty
from datetime import datetime, timedelta
from typing import Any

import pytest
from cli_helpers import Bench, command, newest, run, run_json, until
from langgraph.types import Command

from dapr_runners.engine import RunCancelledError
from engines import until_nobody_works
from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(300)


def listed(*options: str) -> list[tuple[str, str]]:
    """Threads and statuses of the runs there are."""
    return [(each["thread"], each["status"]) for each in run_json("list", *options)]


@pytest.mark.parametrize(("typed", "given"), [('{"ok": true}', {"ok": True}), ("fine", "fine")])
def test_an_interrupt_is_answered(
    bench: Bench, worker: WorkerProcess, typed: str, given: Any
) -> None:
    caller = bench.caller("asking")
    caller.invoke({"number": 3}, thread_id="t")
    asking = newest("asking")
    (question,) = run_json("show", asking)["questions"]
    assert question["prompt"] == {"sure?": 3}
    assert question["about"] == {"node": "ask"}
    assert f"asks         {question['key']}  {{'sure?': 3}}" in run("show", asking)
    said = run("answer", asking, question["key"], typed)
    answering = newest("asking")
    assert said == f"Answered. {answering} goes on with it.\n"
    # The program's own call with the same answer is the same turn.
    assert caller.invoke(Command(resume={question["key"]: given}), thread_id="t")["log"] == [
        "first",
        given,
        "last",
    ]
    assert newest("asking") == answering
    assert bench.worked() == ["first", "last"]
    assert run_json("show", asking)["questions"] == []
    assert "asks no question" in run("answer", asking, question["key"], '"other"', code=3)


def test_one_of_two_interrupts_is_answered(bench: Bench, worker: WorkerProcess) -> None:
    caller = bench.caller("asking-twice")
    caller.invoke({"number": 3}, thread_id="t")
    questions = run_json("show", newest("asking-twice"))["questions"]
    assert {question["about"]["node"] for question in questions} == {"ask", "ask_too"}
    keys = {question["about"]["node"]: question["key"] for question in questions}
    run("answer", "--thread", "t", keys["ask"], "17", "--text")
    followed = run("show", newest("asking-twice"), "--follow")
    assert "status            interrupted" in followed
    (left,) = run_json("show", newest("asking-twice"))["questions"]
    assert left["key"] == keys["ask_too"]
    run("answer", "--thread", "t", "--runner", "asking-twice", left["key"], "18")
    run("show", newest("asking-twice"), "--follow")
    assert sorted(
        caller.get_state({"configurable": {"thread_id": "t"}}).values["log"], key=str
    ) == [
        "17",
        18,
    ]


def test_what_is_asked_is_listed(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("steps").invoke({}, thread_id="s")
    bench.caller("asking").invoke({"number": 3}, thread_id="t")
    bench.caller("asking-twice").invoke({}, thread_id="u")
    asked = run_json("questions")
    assert [(each["thread"], each["runner"]) for each in asked] == [
        ("u", "asking-twice"),
        ("u", "asking-twice"),
        ("t", "asking"),
    ]
    (question,) = run_json("questions", "--runner", "asking")
    assert question == asked[2]
    assert (question["run_id"], question["prompt"]) == (newest("asking"), {"sure?": 3})
    (shown,) = run_json("show", newest("asking"))["questions"]
    assert {name: question[name] for name in shown} == shown
    assert datetime.fromisoformat(question["last_updated_at"]).utcoffset() == timedelta(0)
    (line,) = run("questions", "--thread", "t").splitlines()
    assert line == f"{newest('asking')}  {question['key']}  t  {{'sure?': 3}}"
    run("answer", question["run_id"], question["key"], "1")
    run("show", "--thread", "t", "--follow")
    assert run("questions", "--thread", "t") == ""
    assert run_json("questions") == asked[:2]


def test_what_cannot_be_answered(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("asking").invoke({}, thread_id="t")
    asking = newest("asking")
    assert "asks no question 'nonsense' now" in run("answer", asking, "nonsense", "1", code=3)
    assert "give RUN KEY VALUE" in run("answer", asking, "1", code=2)
    assert "no run" in run("answer", "--thread", "other", "k", "1", code=3)
    (question,) = run_json("show", asking)["questions"]
    worker.kill()
    until_nobody_works(bench.sidecar)
    refused = run("answer", asking, question["key"], "1", code=6)
    assert "No process works for the app" in refused
    assert newest("asking") == asking
    with bench.worker():
        run("answer", asking, question["key"], "1")
        run("show", newest("asking"), "--follow")
    assert listed() == [("t", "completed"), ("t", "interrupted")]


def test_a_suspended_run_begins_no_step(bench: Bench, worker: WorkerProcess) -> None:
    calling = bench.at_the_gate()
    held = newest("held")
    assert run("suspend", held) == f"{held} is suspended.\n"
    assert listed("--status", "suspended") == [("t", "suspended")]
    worker.kill()
    with bench.worker():  # which is given the step that was cut
        bench.open_gate()
        until(lambda: "completed    gate" in run("show", held))
        assert listed() == [("t", "suspended")]
        assert "last" not in bench.worked()
        assert run("resume", "--thread", "t") == f"{held} goes on.\n"
        assert calling.result()[-1]["log"] == ["first", "gate", "last"]
    said = run("resume", held, code=5)
    assert f"The run '{held}' is completed, not suspended" in said
    assert "make the next call on its thread" in said
    assert "is over, so it can not be suspended" in run("suspend", held, code=5)


def test_resume_says_what_to_do(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("asking").invoke({}, thread_id="t")
    said = run("resume", newest("asking"), code=5)
    assert f"`dapr-runners answer {newest('asking')} KEY VALUE`" in said
    bench.break_last()
    with pytest.raises(ValueError, match="broken"):
        bench.caller("steps").invoke({}, thread_id="t")
    assert f"`dapr-runners retry {newest('steps')}`" in run("resume", newest("steps"), code=5)
    assert "Several runners have runs" in run("resume", "--thread", "t", code=2)
    assert "one of RUN and --thread" in run("resume", code=2)


def test_a_terminated_run_tells_who_waits(bench: Bench, worker: WorkerProcess) -> None:
    calling = bench.at_the_gate()
    held = newest("held")
    assert run("terminate", held) == f"{held} is terminated.\n"
    with pytest.raises(RunCancelledError):
        calling.result()
    assert listed() == [("t", "cancelled")]
    assert "is over, so it can not be terminated" in run("terminate", held, code=5)
    bench.open_gate()


def test_nothing_is_terminated_without_a_worker(bench: Bench, worker: WorkerProcess) -> None:
    bench.at_the_gate()
    worker.kill()
    until_nobody_works(bench.sidecar)
    assert "No process works" in run("terminate", newest("held"), code=6)
    assert listed() == [("t", "running")]


def test_runs_are_purged(bench: Bench, worker: WorkerProcess) -> None:
    for thread in ("a", "b", "c"):
        bench.caller("steps").invoke({}, thread_id=thread)
    bench.caller("asking").invoke({}, thread_id="d")
    said = run("purge", newest("asking"), "--yes")
    assert "is purged" in said
    assert "no run" in run("show", said.split()[0], code=3)
    assert run("purge", "--thread", "b", "--yes").endswith("is purged.\n")
    assert listed() == [("c", "completed"), ("a", "completed")]
    assert run("purge", "--older", "1h", "--yes") == ""
    assert run("purge", "--older", "0s", "--status", "failed") == ""
    chosen = ["purge", "--older", "0s", "--status", "completed", "--yes"]
    assert len(run(*chosen).splitlines()) == 2
    assert listed() == []
    assert "an age is a number" in run("purge", "--older", "long", code=2)
    assert "one of RUN, --thread and --older" in run("purge", "x", "--older", "1h", code=2)


def test_nothing_is_purged_unasked(bench: Bench, worker: WorkerProcess) -> None:
    for thread in ("a", "b"):
        bench.caller("steps").invoke({}, thread_id=thread)
    for chosen, what in (
        (["--older", "0s"], "2 runs"),
        (["--older", "0s", "--status", "completed"], "2 runs"),
        ([newest("steps")], newest("steps")),
        (["--thread", "b"], newest("steps")),
    ):
        with command("purge", *chosen) as process:
            said, told = process.communicate()
        assert (process.returncode, said) == (2, "")
        told = " ".join(told.replace("│", " ").split())
        assert f"no terminal to ask on whether to delete all that is recorded for {what}" in told
        assert "Say --yes" in told
        assert len(listed()) == 2


def test_active_runs_are_not_purged(bench: Bench, worker: WorkerProcess) -> None:
    calling = bench.at_the_gate()
    assert "is still active" in run("purge", newest("held"), "--yes", code=5)
    assert run("purge", "--older", "0s") == ""
    bench.open_gate()
    assert calling.result()[-1]["log"] == ["first", "gate", "last"]


def test_a_terminal_is_asked(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("steps").invoke({}, thread_id="t")
    for typed, left in ((b"n\n", 1), (b"y\n", 0)):
        ours, theirs = pty.openpty()
        os.write(ours, typed)
        with command("purge", newest("steps"), stdin=theirs) as process:
            said, _ = process.communicate()
        os.close(ours)
        os.close(theirs)
        assert "Delete all that is recorded for" in said
        assert process.returncode == left
        assert len(listed()) == left
