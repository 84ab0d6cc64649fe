"""What ``show`` says of a run that waits for something that is away; and times."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cli_helpers import Bench, held_up, run, run_json, until
from dapr.ext.workflow import DaprWorkflowClient

from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(300)
_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"


@pytest.mark.skipif(
    not hasattr(DaprWorkflowClient, "get_workflow_history"),
    reason="this SDK's client has no history, which says what holds a run up",
)
def test_what_holds_a_run_up_is_told(bench: Bench, worker: WorkerProcess) -> None:
    before = datetime.now(UTC)
    with held_up(bench) as run_id:
        (held,) = run_json("show", run_id)["held_up"]
        assert held["step"] == "tell"
        assert held["error"].startswith("MessageUndeliveredError: ")
        assert "127.0.0.1:9" in held["error"]
        assert held["attempts"] >= 2
        since = datetime.fromisoformat(held["since"])
        assert before - timedelta(seconds=1) < since < datetime.now(UTC)
        told: list[Any] = []

        def is_to_be_tried() -> bool:  # and is not tried right now
            told[:] = run_json("show", run_id)["held_up"]
            return told[0]["next_try"] is not None

        until(is_to_be_tried)
        following = datetime.fromisoformat(told[0]["next_try"])
        assert since < following < datetime.now(UTC) + timedelta(seconds=15)
        text = run("show", run_id)
        assert re.search(
            rf"held_up           tell: since {_TIME}, tried \d+ times, (next try about {_TIME}|"
            r"it is tried now)\n      MessageUndeliveredError: ",
            text,
        )
    assert run_json("show", run_id)["held_up"] == []


def test_times_say_that_they_are_in_utc(bench: Bench, worker: WorkerProcess) -> None:
    before = datetime.now(UTC)
    bench.caller("steps").invoke({}, thread_id="t")
    until(lambda: run_json("list")[0]["status"] == "completed")
    (listed,) = run_json("list")
    shown = run_json("show", "--thread", "t")
    times = [listed[name] for name in ("created_at", "last_updated_at")]
    assert [shown[name] for name in ("created_at", "last_updated_at")] == times
    times += [step[name] for step in shown["steps"] for name in ("began", "ended")]
    for time in times:
        at = datetime.fromisoformat(time)
        assert at.utcoffset() == timedelta(0)
        assert before - timedelta(seconds=1) < at < datetime.now(UTC) + timedelta(seconds=1)
    assert len(re.findall(_TIME, run("list"))) == 2
    text = run("show", "--thread", "t")  # which has the run's two, and when each step began
    for time in (_TIME, r"\d\d:\d\d:\d\d"):
        assert len(re.findall(time, text)) == 4
    assert [step["status"] for step in shown["steps"]] == ["completed", "completed"]
