"""Workers that die when they have told of a plan and not recorded it yet: the record counts."""

import pytest
from dapr.ext.workflow import WorkflowHistoryEventType
from harness.cluster import Cluster
from harness.deadline import until
from harness.processes import WorkerProcess


def _given_out(cluster: Cluster) -> list[int]:
    """Numbers of the activities of the run that are to be done."""
    history = cluster.history(cluster.run_of("s"))
    done = {
        event.task_scheduled_id
        for event in history
        if event.event_type is WorkflowHistoryEventType.TASK_COMPLETED
    }
    return [
        event.event_id
        for event in history
        if event.event_type is WorkflowHistoryEventType.TASK_SCHEDULED
        and event.event_id not in done
    ]


def _tells_early(cluster: Cluster, worker: WorkerProcess) -> None:
    """Let ``worker`` tell the workflow of the plan after the first search, which is for another
    search, and die before that plan is recorded."""
    for point in ("search a0", "plan 1 stored"):
        cluster.effects.arm(point, "hold")
    worker.send("call", "s")
    cluster.effects.wait("search a0")
    searching = _given_out(cluster)
    cluster.effects.release("search a0")
    cluster.effects.wait("plan 1 stored")
    until(lambda: _given_out(cluster) not in (searching, []))
    worker.kill()
    cluster.effects.release("plan 1 stored")


@pytest.fixture
def cluster(cluster: Cluster) -> Cluster:
    cluster.use_crew("crews:fickle", points=True, program="crew_points")
    return cluster


def _check(cluster: Cluster) -> None:
    # The model was in flight, and says something else now. The tool was not.
    assert cluster.worker().ask("resume", "s")["raw"] == "enough"
    points = cluster.effects.points()
    assert [point for point in points if point.startswith("search ")] == ["search a0"]
    assert points.count("fickle asked") == 3


def test_what_led_to_the_plan_is_done_again(cluster: Cluster) -> None:
    _tells_early(cluster, cluster.worker())
    _check(cluster)


def test_what_is_recorded_in_its_place_counts(cluster: Cluster) -> None:
    _tells_early(cluster, cluster.worker())
    cluster.effects.arm("plan 1 recorded", "die")
    cluster.worker().wait_dead()
    _check(cluster)
