"""A question is answered while nobody works on its run, which goes on when somebody does."""

import pytest
from harness.cluster import Cluster
from harness.deadline import until
from harness.processes import WorkerDiedError, WorkerProcess


def _asked_and_killed(cluster: Cluster) -> str:
    """The key of a question whose worker, which follows its run, is dead."""
    worker = cluster.worker()
    worker.send("follow", "s")
    cluster.effects.wait("researcher answers", 2)
    caller = cluster.caller()
    (key,) = until(lambda: caller.ask("pending", "s"))
    worker.kill()
    caller.kill()
    return key


def _answered(cluster: Cluster, key: str) -> None:
    """It is answered by a process that is gone then: nobody is left to tell the run."""
    caller = cluster.caller()
    caller.ask("answer", "s", key, "")
    caller.kill()


def _answered_by_who_dies_at(cluster: Cluster, point: str, key: str) -> None:
    cluster.effects.arm(point, "die")
    caller = cluster.caller()
    caller.send("answer", "s", key, "")
    with pytest.raises(WorkerDiedError):
        caller.reply()


def _completes(cluster: Cluster, worker: WorkerProcess) -> None:
    run = cluster.run_of("s")
    until(lambda: worker.ask("status", run) == "COMPLETED")
    assert worker.ask("resume", "s")["raw"] == "a report"
    assert cluster.effects.count("researcher asked") == 2


def test_who_follows_the_run_again_sees_it_go_on(cluster: Cluster) -> None:
    cluster.use_crew("crews:reviewed")
    _answered(cluster, _asked_and_killed(cluster))
    types = cluster.worker().ask("follow", "s")
    assert types[-3:] == ["human_input_required", "human_input_received", "workflow_completed"]


def test_a_run_goes_on_that_nobody_follows(cluster: Cluster) -> None:
    cluster.use_crew("crews:reviewed")
    _answered(cluster, _asked_and_killed(cluster))
    _completes(cluster, cluster.worker())


def test_a_run_goes_on_whose_answer_was_never_told_of(cluster: Cluster) -> None:
    """Though a worker is there: who answered died when the answer was recorded."""
    cluster.use_crew("crews:reviewed", points=True)
    key = _asked_and_killed(cluster)
    worker = cluster.worker()
    _answered_by_who_dies_at(cluster, "answer recorded", key)
    _completes(cluster, worker)


def test_a_question_can_be_answered_that_its_workflow_does_not_know_of(cluster: Cluster) -> None:
    cluster.use_crew("crews:reviewed", points=True)
    cluster.effects.arm("1 commit advance recorded", "die")
    worker = cluster.worker()
    worker.send("follow", "s")
    worker.wait_dead()
    caller = cluster.caller()
    (key,) = caller.ask("pending", "s")
    _answered(cluster, key)
    assert caller.ask("pending", "s") == []
    caller.kill()
    _completes(cluster, cluster.worker())


def test_an_answer_that_is_not_recorded_is_not_given(cluster: Cluster) -> None:
    cluster.use_crew("crews:reviewed", points=True)
    key = _asked_and_killed(cluster)
    worker = cluster.worker()
    _answered_by_who_dies_at(cluster, "answer stored", key)
    assert worker.ask("pending", "s") == [key]
    _answered(cluster, key)
    _completes(cluster, worker)
