"""A step that takes longer than step_timeout is given up: if it ends later, nothing changes."""

import time

import pytest
from harness.cluster import Cluster
from harness.deadline import until

from dapr_runners.engine import StepTimeoutError

_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])

_LIMIT = 3
"""Seconds that a step may take: the others take a fraction of one."""


def _text(cluster: Cluster, step: str) -> str:
    return (
        f"The step {step!r} of run {cluster.run_of('thread')!r} took longer than its limit of "
        f"{_LIMIT} s and was given up; if it still ends, its result is ignored. Raise step_timeout "
        "if the step may take longer."
    )


@_MODES
@pytest.mark.parametrize("steps", [1, 10], ids=["activity a step", "fast lane"])
@pytest.mark.parametrize(("graph", "step"), [("lone", "slow"), ("in_subgraph", "sub/slow")])
def test_a_hanging_step_fails_its_run(
    graph: str, step: str, steps: int, is_async: bool, cluster: Cluster
) -> None:
    cluster.use(f"limit_graphs:{graph}", is_async, step_timeout=_LIMIT, steps_per_activity=steps)
    cluster.effects.arm("slow in", "hold")
    worker = cluster.worker()
    with pytest.raises(StepTimeoutError) as caught:
        worker.ask("call", "thread", {"log": ["input"]})
    assert str(caught.value) == _text(cluster, step)
    assert (caught.value.step, caught.value.seconds) == (step, _LIMIT)
    before = worker.ask("values", "thread")

    cluster.effects.release("slow in")
    cluster.effects.wait("slow end")
    assert worker.ask("values", "thread") == before == {"log": ["input", "first"]}
    assert cluster.effects.count("slow start") == 1
    # And the thread goes on where it stopped: that node alone runs again.
    result = worker.ask("call", "thread", None)
    assert result["log"][-1] == "slow"
    assert cluster.effects.count("first start") == 1


@_MODES
def test_the_result_of_a_healthy_sibling_is_kept(is_async: bool, cluster: Cluster) -> None:
    cluster.use("limit_graphs:fan_out", is_async, step_timeout=_LIMIT)
    cluster.effects.arm("slow in", "hold")
    worker = cluster.worker()
    with pytest.raises(StepTimeoutError) as caught:
        worker.ask("call", "thread", {"log": ["input"]})
    assert str(caught.value) == _text(cluster, "slow")
    result = worker.ask("call", "thread", None)
    assert sorted(result["log"]) == sorted(["input", "first", "slow", "healthy", "last"])
    assert cluster.effects.count("healthy start") == 1
    assert cluster.effects.count("slow start") == 2


def test_time_without_a_worker_does_not_count(cluster: Cluster) -> None:
    cluster.use("limit_graphs:lone", step_timeout=_LIMIT)
    cluster.effects.arm("slow in", "die")
    caller = cluster.caller()
    first = cluster.worker()
    caller.send("call", "thread", {"log": ["input"]})
    first.wait_dead()
    began = cluster.effects.events()[-1]["at"]
    # There is no worker when the limit is over.
    until(lambda: time.monotonic() > began + _LIMIT + 0.2)
    cluster.worker()
    assert caller.reply()["log"] == ["input", "first", "slow"]
