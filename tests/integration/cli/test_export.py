"""``dapr-runners export``, and pages and ages of ``list``."""

import json

import pytest
from cli_helpers import Bench, held_up, newest, run, run_json

from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(300)
_NOTE = "a note that nobody else should read"


def test_all_of_a_run_is_exported(bench: Bench, worker: WorkerProcess) -> None:
    bench.caller("paying").invoke({"note": _NOTE}, thread_id="a-thread")
    exported = json.loads(run("export", newest("paying")))
    assert exported["format"] == 1
    assert exported["versions"].keys() >= {"dapr-runners", "python", "langgraph", "sidecar"}
    assert exported["run"]["thread"] == "a-thread"
    assert exported["spec"]["input"] == {"note": _NOTE}
    assert exported["events"][-1]["output"]["note"] == _NOTE
    shown = {step["name"]: step for step in exported["steps"]}
    assert {"first", "pay", "beside", "inner/last"} <= shown.keys()
    (effect,) = exported["effects"]
    assert (effect["effect"], effect["execution_status"], effect["result"]) == (
        "charge",
        "succeeded",
        7,
    )


def test_a_redacted_export_holds_no_value(bench: Bench, worker: WorkerProcess) -> None:
    bench.break_last()
    with pytest.raises(ValueError, match="broken"):
        bench.caller("paying").invoke({"note": _NOTE}, thread_id="a-thread")
    whole = run("export", newest("paying"))
    told = run("export", newest("paying"), "--redact")
    for secret in (_NOTE, "a-thread", "is broken", "raise ValueError"):
        assert secret in whole
        assert secret not in told
    exported = json.loads(told)
    assert exported["spec"]["input"] == {"type": "dict", "size": len(json.dumps({"note": _NOTE}))}
    assert exported["events"][-1]["error"]["error_type"] == "ValueError"
    assert exported["steps"][0]["name"] == "first"


def test_a_redacted_export_says_not_with_whom_a_run_waits(
    bench: Bench, worker: WorkerProcess
) -> None:
    with held_up(bench) as run_id:
        whole, told = (run("export", run_id, *more) for more in ((), ("--redact",)))
    assert "a-token" in whole
    assert "a-token" not in told
    assert json.loads(told)["workflow"]["custom_status"]["step"] == "tell"


def test_runs_are_listed_in_pages_and_by_age(bench: Bench, worker: WorkerProcess) -> None:
    for number in range(5):
        bench.caller("steps").invoke({}, thread_id=f"t{number}")
    pages = [
        [each["thread"] for each in run_json("list", "--limit", "2", "--page", str(page))]
        for page in (1, 2, 3, 4)
    ]
    assert pages == [["t4", "t3"], ["t2", "t1"], ["t0"], []]
    assert run_json("list", "--older", "1h") == []
    assert len(run_json("list", "--newer", "1h", "--older", "0s")) == 5
    assert "an age is a number and one of s, m, h, d and w" in run("list", "--newer", "1y", code=2)
