"""StepRetry: the waits are durable timers, which need no worker and outlast every process.

Times are lower bounds, taken from the clock of the process that counts effects.
"""

from itertools import pairwise

import pytest
from dapr.ext.workflow import WorkflowHistoryEventType
from harness.cluster import Cluster
from harness.deadline import until
from harness.effects import InjectedError

from dapr_runners.langgraph import StepRetry

_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def _waits(cluster: Cluster) -> list[float]:
    """Seconds between the beginnings of the attempts."""
    times = [event["at"] for event in cluster.effects.events() if event["point"] == "flaky start"]
    return [after - before for before, after in pairwise(times)]


def _retry(**other: object) -> StepRetry:
    settings = {"max_attempts": 5, "first_interval": 0.4, "backoff": 2, "retry_on": [InjectedError]}
    return StepRetry(**{**settings, **other})  # type: ignore[arg-type]


@_MODES
@pytest.mark.parametrize("graph", ["plain", "in_subgraph"])
def test_two_failures_then_success(graph: str, is_async: bool, cluster: Cluster) -> None:
    cluster.use(f"retry_graphs:{graph}", is_async, retry=_retry())
    cluster.effects.arm("flaky in", "raise", "raise")
    result = cluster.worker().ask("call", "thread", {"log": []})
    assert "flaky" in result["log"]
    first, second = _waits(cluster)
    assert first >= 0.4
    assert second >= 0.8
    assert cluster.effects.count("calm start") == (graph == "in_subgraph")


@_MODES
def test_the_wait_needs_no_worker_and_outlasts_it(is_async: bool, cluster: Cluster) -> None:
    cluster.use("retry_graphs:plain", is_async, retry=_retry(first_interval=1))
    cluster.effects.arm("flaky in", "raise", "raise")
    caller = cluster.caller()
    caller.send("call", "thread", {"log": []})
    first = cluster.worker()
    cluster.effects.wait("flaky start")
    # The failure is recorded, and the timer set, when the workflow has taken it up.
    until(lambda: _timers(cluster))
    first.kill()
    second = cluster.worker()
    cluster.effects.wait("flaky start", 2)
    until(lambda: _timers(cluster))
    second.kill()
    cluster.sidecar.kill()
    cluster.sidecar.start()
    cluster.worker()
    assert caller.reply()["log"] == ["flaky"]
    first_wait, second_wait = _waits(cluster)
    assert first_wait >= 1
    assert second_wait >= 2
    assert cluster.effects.count("flaky start") == 3


def _timers(cluster: Cluster) -> int:
    """How many are set and have not fired."""
    kinds = [event.event_type for event in cluster.history(cluster.run_of("thread"))]
    created = kinds.count(WorkflowHistoryEventType.TIMER_CREATED)
    return created - kinds.count(WorkflowHistoryEventType.TIMER_FIRED)


def test_the_wait_is_capped(cluster: Cluster) -> None:
    cluster.use("retry_graphs:plain", retry=_retry(first_interval=0.1, backoff=100, cap=0.3))
    cluster.effects.arm("flaky in", *["raise"] * 4)
    cluster.worker().ask("call", "thread", {"log": []})
    # Without the cap the second wait alone would be ten seconds, and the third a thousand.
    waits = _waits(cluster)
    assert len(waits) == 4
    assert all(wait >= least for wait, least in zip(waits, [0.1, 0.3, 0.3, 0.3], strict=True))


def test_it_gives_up_after_the_last_attempt(cluster: Cluster) -> None:
    cluster.use("retry_graphs:plain", retry=_retry(max_attempts=3, first_interval=0.01))
    cluster.effects.arm("flaky in", *["raise"] * 9)
    worker = cluster.worker()
    with pytest.raises(InjectedError, match="flaky in"):
        worker.ask("call", "thread", {"log": []})
    assert cluster.effects.count("flaky start") == 3


def test_the_deadline_counts_from_the_first_attempt_over_kills(cluster: Cluster) -> None:
    cluster.use("retry_graphs:plain", retry=_retry(first_interval=3, backoff=1, deadline=5))
    cluster.effects.arm("flaky in", *["raise"] * 9)
    caller = cluster.caller()
    caller.send("call", "thread", {"log": []})
    first = cluster.worker()
    cluster.effects.wait("flaky start")
    until(lambda: _timers(cluster))
    first.kill()
    cluster.worker()
    with pytest.raises(InjectedError, match="flaky in"):
        caller.reply()
    # The second attempt began within the deadline or not at all: a third never.
    assert cluster.effects.count("flaky start") == 2


def test_other_errors_are_not_retried(cluster: Cluster) -> None:
    cluster.use("retry_graphs:plain", retry=_retry(retry_on=[OSError]))
    cluster.effects.arm("flaky in", "raise")
    worker = cluster.worker()
    with pytest.raises(InjectedError):
        worker.ask("call", "thread", {"log": []})
    assert cluster.effects.count("flaky start") == 1


def test_a_policy_of_langgraphs_is_left_to_langgraph(cluster: Cluster) -> None:
    cluster.use("retry_graphs:with_policy", retry=_retry())
    cluster.effects.arm("flaky in", "raise")
    worker = cluster.worker()
    assert worker.ask("call", "thread", {"log": []})["log"] == ["flaky"]
    assert cluster.effects.count("flaky start") == 2
    # Its two attempts are all there are: the runner adds none.
    cluster.effects.arm("flaky in", *["raise"] * 9)
    with pytest.raises(InjectedError):
        worker.ask("call", "other", {"log": []})
    assert cluster.effects.count("flaky start") == 4
