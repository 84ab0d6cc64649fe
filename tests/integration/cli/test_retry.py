"""``dapr-runners retry``: from where a run failed, and from a step."""

from collections import Counter
from typing import Any

import pytest
from cli_helpers import Bench, newest, run, run_json, until
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from dapr_runners.sidecar import EmbeddedSidecar
from engines import until_nobody_works
from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(300)


def statuses() -> list[str]:
    return [each["status"] for each in run_json("list")]


def result_of(bench: Bench, name: str) -> Any:
    """What the newest turn of the thread has left there."""
    state = bench.caller(name).get_state({"configurable": {"thread_id": "t"}})
    return sorted(state.values["log"], key=str)


def test_a_failed_step_is_done_again(bench: Bench, worker: WorkerProcess) -> None:
    bench.break_last()
    with pytest.raises(ValueError, match="broken"):
        bench.caller("steps").invoke({}, thread_id="t")
    failed = newest("steps")
    until(lambda: statuses() == ["failed"])
    bench.break_last(False)
    assert run("retry", "--thread", "t") == f"{failed} goes on.\n"
    run("show", failed, "--follow")
    assert run_json("show", failed)["status"] == "completed"
    assert result_of(bench, "steps") == ["first", "last"]
    assert bench.worked() == ["first", "last", "last"]
    # Who calls again gets the result.
    assert bench.caller("steps").invoke({}, thread_id="t")["log"] == ["first", "last"]
    assert newest("steps") == failed
    said = run("retry", failed, code=5)
    assert "it is completed, and there is nothing that it has failed of" in said


def test_what_ended_well_beside_it_stays(bench: Bench, worker: WorkerProcess) -> None:
    bench.break_last()
    held = bench.folder / "held"
    held.touch()
    calling = bench.pool.submit(bench.caller("paying").invoke, {}, thread_id="t")
    until(lambda: {"pay", "last"} <= set(bench.worked()))
    failed = newest("paying")
    until(lambda: "completed    beside" in run("show", failed))
    held.unlink()
    with pytest.raises(ValueError, match="broken"):
        calling.result()
    until(lambda: statuses() == ["failed"])
    before = Counter(bench.worked())
    bench.break_last(False)
    run("retry", failed)
    run("show", failed, "--follow")
    assert run_json("show", failed)["status"] == "completed"
    assert result_of(bench, "paying") == [7, "beside", "first", "first", "last"]
    after = Counter(bench.worked())
    assert (after["first"], after["charged"]) == (1, 1)
    assert after["pay"] == before["pay"] + 1
    assert after["beside"] == 1


def test_a_cancelled_run_goes_on_with_another_worker(bench: Bench, worker: WorkerProcess) -> None:
    bench.at_the_gate()
    held = newest("held")
    run("suspend", held)
    bench.open_gate()
    until(lambda: "completed    gate" in run("show", held))
    run("cancel", held)
    worker.kill()
    until_nobody_works(bench.sidecar)
    assert "No process works for the app" in run("retry", held, code=6)
    assert statuses() == ["cancelled"]
    with bench.worker():
        run("retry", held)
        run("show", held, "--follow")
    assert statuses() == ["completed"]
    assert bench.worked() == ["first", "gate", "last"]


def retried(run_id: str) -> None:
    """Retry a run, when its steps have come back."""
    until(lambda: CliRunner().invoke(app, ["retry", run_id]).exit_code == 0)


def test_a_step_that_is_at_work_is_waited_for(bench: Bench, worker: WorkerProcess) -> None:
    if not isinstance(bench.sidecar, EmbeddedSidecar):
        pytest.skip("daprd starts a terminated workflow again while its activity is at work")
    bench.at_the_gate()
    held = newest("held")
    run("cancel", held)
    assert "a step of it is still at work" in run("retry", held, code=5)
    assert statuses() == ["cancelled"]
    bench.open_gate()
    retried(held)
    until(lambda: bench.worked().count("gate") == 2)
    bench.open_gate()
    run("show", held, "--follow")
    assert statuses() == ["completed"]


def test_a_run_that_its_saver_broke_goes_on(bench: Bench, worker: WorkerProcess) -> None:
    bench.break_last()
    with pytest.raises(OSError, match="the disk is full"):
        bench.caller("saved").invoke({}, thread_id="t")
    failed = newest("saved")
    assert run_json("show", failed)["error"] == "OSError: the disk is full"
    until(lambda: statuses() == ["failed"])
    bench.break_last(False)
    run("retry", failed)
    run("show", failed, "--follow")
    assert run_json("show", failed)["status"] == "completed"
    assert bench.caller("saved").invoke({}, thread_id="t")["log"] == ["first", "beside", "last"]
    assert Counter(bench.worked())["first"] == 1


def test_a_thread_that_went_on_is_left_alone(bench: Bench, worker: WorkerProcess) -> None:
    bench.break_last()
    with pytest.raises(ValueError, match="broken"):
        bench.caller("steps").invoke({}, thread_id="t")
    failed = newest("steps")
    bench.break_last(False)
    bench.caller("steps").invoke({"number": 2}, thread_id="t")
    assert "has had another turn since" in run("retry", failed, code=5)


def test_a_step_of_a_finished_run_is_done_again(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("steps").invoke({"number": 7}, thread_id="t")
    first = newest("steps")
    said = run("retry", first, "--from", "last")
    second = newest("steps")
    assert said == f"{second} goes on from last of {first}.\n"
    run("show", second, "--follow")
    assert statuses() == ["completed", "completed"]
    assert bench.worked() == ["first", "last", "last"]
    assert result_of(bench, "steps") == ["first", "last"]
    run("retry", first, "--from", "last")
    third = newest("steps")
    assert third not in (first, second)
    run("show", third, "--follow")
    run("retry", third, "--from", "last")
    assert newest("steps") not in (first, second, third)
    run("show", newest("steps"), "--follow")
    assert bench.worked() == ["first", *["last"] * 4]
    (begin, *_) = run_json("show", first)["steps"]
    run("retry", first, "--from", begin["step_id"])
    run("show", newest("steps"), "--follow")
    assert bench.worked() == ["first", *["last"] * 4, "first", "last"]
    assert result_of(bench, "steps") == ["first", "last"]
    assert "It has: first (" in run("retry", first, "--from", "nothing", code=3)


def test_effects_happen_again_only_if_asked(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("paying").invoke({}, thread_id="t")
    first = newest("paying")
    said = run("retry", first, "--from", "pay", code=5)
    assert "effects have happened that would happen once more: charge in pay" in said
    assert statuses() == ["completed"]
    run("retry", first, "--from", "pay", "--again")
    run("show", newest("paying"), "--follow")
    assert Counter(bench.worked())["charged"] == 2
    assert Counter(bench.worked())["first"] == 1


def test_a_run_without_a_thread_has_no_state_to_go_on_from(
    bench: Bench, worker: WorkerProcess
) -> None:
    bench.caller("steps").invoke({})
    assert "it is of no thread" in run("retry", newest("steps"), "--from", "last", code=5)
