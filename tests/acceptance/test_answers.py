"""A node whose worker dies pays for no answer of a chat model twice.

What is asked is counted by another process. Workers are killed with SIGKILL.
"""

import pytest
from harness.cluster import Cluster
from harness.effects import InjectedError

from dapr_runners.langgraph import StepRetry

pytestmark = pytest.mark.timeout(240)
_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def _asked(cluster: Cluster) -> list[str]:
    return [event["text"] for event in cluster.effects.events() if event["point"] == "asked"]


def _killed_at(cluster: Cluster, point: str) -> None:
    cluster.effects.arm(point, "die")
    worker = cluster.worker()
    worker.send("call", "thread", {"log": []})
    worker.wait_dead()


@_MODES
@pytest.mark.parametrize("graph", ["plain", "streaming"])
def test_what_was_answered_is_not_asked_again(graph: str, is_async: bool, cluster: Cluster) -> None:
    cluster.use(f"answer_graphs:{graph}", is_async)
    _killed_at(cluster, "answered 2")
    worker = cluster.worker()
    log = worker.ask("call", "thread", {"log": []})["log"]
    # The same question again is another question: it has an answer of its own.
    assert _asked(cluster) == ["one", "two", "two"]
    assert [message.text for message in log] == ["one 1", "two 2", "two 3"]


def test_who_is_asked_at_once_gets_its_own_answer(cluster: Cluster) -> None:
    cluster.use("answer_graphs:two_sizes", is_async=True)
    _killed_at(cluster, "answered both")
    log = cluster.worker().ask("call", "thread", {"log": []})["log"]
    assert [message.text for message in log] == ["I am large", "I am small"]
    assert sorted(_asked(cluster)) == ["large", "small"]


@_MODES
def test_an_answer_is_what_it_was(is_async: bool, cluster: Cluster) -> None:
    cluster.use("answer_graphs:plain", is_async)
    undisturbed = cluster.worker().ask("call", "other", {"log": []})["log"]
    _killed_at(cluster, "answered 3")
    log = cluster.worker().ask("call", "thread", {"log": []})["log"]
    assert _asked(cluster) == ["one", "two", "two"] * 2
    assert len({message.id for message in log}) == 3
    plain = [message.model_dump(exclude={"id", "content"}) for message in undisturbed]
    assert [message.model_dump(exclude={"id", "content"}) for message in log] == plain
    assert log[0].usage_metadata == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


@_MODES
def test_who_asks_again_after_a_failure_is_answered_anew(is_async: bool, cluster: Cluster) -> None:
    cluster.use("answer_graphs:retried", is_async)
    cluster.effects.arm("answered 2", "raise")
    log = cluster.worker().ask("call", "thread", {"log": []})["log"]
    assert [message.text for message in log] == ["one 3", "two 4", "two 5"]


@_MODES
def test_so_is_a_step_that_is_tried_again(is_async: bool, cluster: Cluster) -> None:
    retry = StepRetry(first_interval=0.05, retry_on=[InjectedError])
    cluster.use("answer_graphs:plain", is_async, retry=retry)
    cluster.effects.arm("answered 2", "raise", "die")
    worker = cluster.worker()
    worker.send("call", "thread", {"log": []})
    worker.wait_dead()
    log = cluster.worker().ask("call", "thread", {"log": []})["log"]
    # The second attempt died: the third has its answers, and not those of the first.
    assert [message.text for message in log] == ["one 3", "two 4", "two 5"]


def test_it_can_be_turned_off(cluster: Cluster) -> None:
    cluster.use("answer_graphs:plain", record_answers=False)
    _killed_at(cluster, "answered 2")
    log = cluster.worker().ask("call", "thread", {"log": []})["log"]
    assert [message.text for message in log] == ["one 3", "two 4", "two 5"]


def test_answers_are_purged_with_their_run(cluster: Cluster) -> None:
    cluster.use("answer_graphs:plain")
    worker = cluster.worker()
    worker.ask("call", "thread", {"log": []})
    run = cluster.run_of("thread")
    assert _stored(cluster, run)
    worker.ask("purge", run)
    assert not _stored(cluster, run)


def _stored(cluster: Cluster, run: str) -> list[str]:
    return list(cluster.stored(f"dr/run/{run}/answer/"))
