"""What a step has noted is sent once it is recorded, and by no other attempt.

Workers are killed with SIGKILL; webhooks are received by the test.
"""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import pytest
from dapr.clients import DaprClient
from dapr.common.pubsub.subscription import StreamCancelledError, StreamInactiveError
from harness.cluster import Cluster
from harness.deadline import until
from harness.effects import InjectedError
from harness.processes import WorkerProcess
from harness.receiver import Receiver
from langgraph.types import Command

from dapr_runners.effects import (
    DeadLetters,
    MessageNotNotedError,
    MessageRefusedError,
    publish,
    webhook,
)
from dapr_runners.langgraph import StepRetry
from dapr_runners.state import UnstorableValueError

pytestmark = pytest.mark.timeout(240)
_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def _input(receiver: Receiver) -> dict[str, Any]:
    return {"log": [], "url": receiver.url}


def _died(cluster: Cluster, receiver: Receiver, point: str) -> None:
    cluster.effects.arm(point, "die")
    worker = cluster.worker()
    worker.send("call", "thread", _input(receiver))
    worker.wait_dead()


def _noted(cluster: Cluster, name: str = "tell") -> list[list[str]]:
    """The ids that each attempt was given."""
    return [e["ids"] for e in cluster.effects.events() if e["point"] == f"{name} noted"]


def _both(attempt: str, name: str = "tell") -> list[dict[str, Any]]:
    return [{"from": name, "number": n, "attempt": attempt} for n in (1, 2)]


@_MODES
@pytest.mark.parametrize(
    ("graph", "point", "attempts"),
    [
        ("alone", "tell noted", 2),
        ("alone", "1 fuse tell stored", 2),
        ("alone", "1 fuse tell recorded", 1),
        ("alone", "1 fuse tell answer", 1),
        ("last", "tell noted", 2),
        ("last", "1 fuse tell recorded", 1),
    ],
)
def test_it_is_sent_once_whenever_its_worker_is_killed(
    graph: str, point: str, attempts: int, is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use(f"message_graphs:{graph}", is_async, points=True)
    _died(cluster, receiver, point)
    if not point.endswith("answer"):
        assert receiver.deliveries == []
    log = cluster.worker().ask("call", "thread", _input(receiver))["log"]
    assert receiver.bodies == _both(log[0])
    noted = _noted(cluster)
    assert len(noted) == attempts
    assert noted[0] == noted[-1] == receiver.ids
    assert len(set(noted[0])) == 2


@_MODES
@pytest.mark.parametrize("graph", ["beside", "in_subgraph"])
@pytest.mark.parametrize("phase", ["noted", "stored", "recorded"])
def test_so_do_parallel_nodes_and_those_of_subgraphs(
    phase: str, graph: str, is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use(f"message_graphs:{graph}", is_async, points=True)
    step = "step tell" if graph == "beside" else "fuse sub/tell"
    _died(cluster, receiver, "tell noted" if phase == "noted" else f"1 {step} {phase}")
    log = cluster.worker().ask("call", "thread", _input(receiver))["log"]
    told = [body for body in receiver.bodies if body["from"] == "tell"]
    assert told == _both(told[0]["attempt"])
    assert told[0]["attempt"] in log
    if graph == "beside":  # it may have been about to note that it has sent
        also = {d.id: d.body for d in receiver.deliveries if d.body["from"] == "also"}
        attempts = {body["attempt"] for body in also.values()}
        assert list(also.values()) == _both(attempts.pop(), "also")
        assert not attempts
        assert {d.body["attempt"] for d in receiver.deliveries} <= set(log)


@_MODES
def test_killed_while_it_is_sent_it_is_sent_again_with_the_same_id(
    is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:alone", is_async)
    worker = cluster.worker()

    def kill(_: Any) -> None:
        receiver.on_delivery = lambda _: None
        worker.kill()

    receiver.on_delivery = kill
    worker.send("call", "thread", _input(receiver))
    worker.wait_dead()
    log = cluster.worker().ask("call", "thread", _input(receiver))["log"]
    first, second = _both(log[0])
    assert receiver.bodies == [first, first, second]
    assert receiver.ids[0] == receiver.ids[1]
    assert cluster.effects.count("tell noted") == 1


@_MODES
@pytest.mark.parametrize(
    ("graph", "options"),
    [("retried", {}), ("alone", {"retry": StepRetry(first_interval=0.01)})],
)
def test_a_retried_node_sends_what_its_last_attempt_noted(
    graph: str, options: Any, is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    if options:
        options = {"retry": StepRetry(first_interval=0.01, retry_on=[InjectedError])}
    cluster.use(f"message_graphs:{graph}", is_async, **options)
    cluster.effects.arm("tell noted", "raise", "raise")
    log = cluster.worker().ask("call", "thread", _input(receiver))["log"]
    assert receiver.bodies == _both(log[0])
    noted = _noted(cluster)
    assert noted == [receiver.ids] * 3


@_MODES
def test_a_node_that_fails_sends_nothing_until_it_is_started_again(
    is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    retry = StepRetry(max_attempts=2, first_interval=0.01, retry_on=[InjectedError])
    cluster.use("message_graphs:alone", is_async, retry=retry)
    cluster.effects.arm("tell noted", "raise", "raise")
    worker = cluster.worker()
    with pytest.raises(InjectedError):
        worker.ask("call", "thread", _input(receiver))
    assert receiver.deliveries == []
    worker.ask("decide", "retry")
    log = worker.ask("call", "thread", _input(receiver))["log"]
    assert receiver.bodies == _both(log[0])


@_MODES
def test_an_interrupted_node_sends_when_it_is_complete(
    is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:interrupted", is_async)
    worker = cluster.worker()
    worker.ask("call", "thread", _input(receiver))
    assert receiver.deliveries == []
    worker.ask("call", "thread", Command(resume="yes"))
    assert receiver.bodies == ["before", "yes"]


@_MODES
def test_what_was_complete_in_an_interrupted_node_is_sent_once(
    is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:around_interrupted", is_async)
    worker = cluster.worker()
    worker.ask("call", "thread", _input(receiver))
    assert receiver.bodies == ["told"]
    assert worker.ask("call", "thread", Command(resume="yes"))["log"] == ["told", "yes"]
    assert receiver.bodies == ["told", "called"]
    assert cluster.effects.count("told") == 1


def test_a_task_is_complete_before_its_entrypoint(cluster: Cluster, receiver: Receiver) -> None:
    cluster.use("message_graphs:task_then_interrupt")
    worker = cluster.worker()
    worker.ask("call", "thread", _input(receiver))
    assert receiver.bodies == ["told"]
    assert worker.ask("call", "thread", Command(resume="yes"))["log"] == ["told", "yes"]
    assert receiver.bodies == ["told", "begun"]
    assert cluster.effects.count("told") == 1


@_MODES
def test_what_a_recorded_task_noted_is_sent_though_it_does_not_run_again(
    is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:with_tasks", is_async)
    _died(cluster, receiver, "flow")
    assert receiver.deliveries == []
    log = cluster.worker().ask("call", "thread", _input(receiver))["log"]
    assert cluster.effects.count("deepest") == 1
    assert receiver.bodies == [{"from": "deepest", "attempt": log[0]}, {"from": "flow"}]


@_MODES
@pytest.mark.parametrize("graph", ["alone", "beside", "last"])
def test_a_receiver_that_is_away_holds_the_run_up(
    graph: str, is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use(f"message_graphs:{graph}", is_async)
    receiver.stop()
    worker = cluster.worker()
    worker.ask("begin", "thread", _input(receiver))
    run = cluster.run_of("thread")

    def told() -> Any:
        said = worker.ask("custom_status", run)
        return json.loads(said) if said and said != '""' else None

    said = until(told, 60)
    assert said["kind"] == "MessageUndeliveredError"
    assert said["step"] in ("tell", "also")
    assert receiver.url in said["detail"]
    assert cluster.effects.count("tell noted") == 1
    receiver.start()
    log = worker.ask("result", "thread", seconds=60)["log"]
    assert log[-1] == "finished" or graph == "last"
    told_by_it = [body for body in receiver.bodies if body["from"] == "tell"]
    assert told_by_it == _both(told_by_it[0]["attempt"])
    assert told_by_it[0]["attempt"] in log
    assert cluster.effects.count("tell noted") == 1


def test_what_a_step_told_is_sent_though_its_run_has_failed_meanwhile(
    cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:beside_failing", points=True)
    receiver.stop()
    cluster.effects.arm("fail", "hold")
    worker = cluster.worker()
    worker.send("call", "thread", _input(receiver))
    cluster.effects.wait("1 step tell recorded")
    cluster.effects.release("fail")
    with pytest.raises(ValueError, match="it fails"):
        worker.reply()
    receiver.start()
    until(lambda: len(receiver.deliveries) == 2)
    assert receiver.ids == _noted(cluster)[0]
    until(lambda: worker.ask("status", cluster.run_of("thread")) == "COMPLETED")


def test_a_cancelled_run_sends_nothing_more(cluster: Cluster, receiver: Receiver) -> None:
    cluster.use("message_graphs:alone")
    receiver.stop()
    worker = cluster.worker()
    worker.ask("begin", "thread", _input(receiver))
    run = cluster.run_of("thread")
    # Then a timer waits, for some seconds.
    until(lambda: "MessageUndelivered" in (worker.ask("custom_status", run) or ""), 60)
    worker.ask("cancel", run)
    until(lambda: worker.ask("status", run) == "TERMINATED")
    receiver.start()
    log = worker.ask("call", "another", _input(receiver))["log"]
    assert receiver.bodies == _both(log[0])


@_MODES
@pytest.mark.parametrize("options", [{}, {"steps_per_activity": 5}])
def test_what_was_taken_before_is_not_sent_again(
    options: dict[str, Any], is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:alone", is_async, **options)
    receiver.answers = [204, *[503] * 12]  # more than are tried within one activity
    log = cluster.worker().ask("call", "thread", _input(receiver), seconds=60)["log"]
    assert receiver.answers == []
    assert receiver.bodies == _both(log[0])


def test_the_order_is_kept_where_one_is_sent_again(cluster: Cluster, receiver: Receiver) -> None:
    cluster.use("message_graphs:alone")
    receiver.answers = [503, 429, 204, 408, 425]
    log = cluster.worker().ask("call", "thread", _input(receiver))["log"]
    assert receiver.bodies == _both(log[0])


def _letters(cluster: Cluster) -> DeadLetters:
    return DeadLetters(port=cluster.sidecar.grpc_port)


@_MODES
@pytest.mark.parametrize("status", [400, 301])
def test_what_is_refused_becomes_a_dead_letter(
    status: int, is_async: bool, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:alone", is_async)
    receiver.answers = [status]
    worker = cluster.worker()
    log = worker.ask("call", "thread", _input(receiver))["log"]
    assert log[1] == "finished"
    first, second = _both(log[0])
    assert receiver.bodies == [second]
    (letter,) = _letters(cluster).list()
    assert (letter.kind, letter.step) == ("message", "tell")
    assert (letter.run_id, letter.destination) == (cluster.run_of("thread"), receiver.url)
    assert letter.message_id == _noted(cluster)[0][0]
    assert str(status) in letter.error
    receiver.answers = [403]
    with pytest.raises(MessageRefusedError, match="403"):
        _letters(cluster).retry(letter.id, who="me", why="they say it works")
    assert _letters(cluster).get(letter.id).attempts == 2
    with pytest.raises(ValueError, match="retried or dropped"):
        _letters(cluster).resolve(letter.id, None, who="me", why="I called them")
    worker.ask("decide", "retry")
    assert receiver.bodies == [second, first]
    assert receiver.ids[1] == letter.message_id
    assert _letters(cluster).list() == []


def test_a_letter_may_be_dropped(cluster: Cluster, receiver: Receiver) -> None:
    cluster.use("message_graphs:alone")
    receiver.answers = [410, 410]
    worker = cluster.worker()
    worker.ask("call", "thread", _input(receiver))
    first, second = _letters(cluster).list()
    _letters(cluster).drop(first.id, who="me", why="they are gone")
    assert _letters(cluster).list() == [second]
    run = cluster.run_of("thread")
    (decided,) = _letters(cluster).decisions(run)
    assert (decided.letter, decided.what, decided.who) == (first.id, "drop", "me")
    until(lambda: worker.ask("status", run) == "COMPLETED")
    worker.ask("purge", run)
    assert _letters(cluster).list() == []
    assert cluster.stored(run) == {}
    assert receiver.deliveries == []


@pytest.fixture
def topic(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Takes the next message of the topic ``orders``."""
    monkeypatch.setattr("dapr.conf.settings.DAPR_HTTP_PORT", cluster.sidecar.http_port)
    with DaprClient(address=cluster.sidecar.address) as client:
        subscription, messages = client.subscribe("pubsub", "orders"), SimpleQueue[Any]()

        def listen() -> None:
            # At once: daprd's pub/sub in memory takes no message while one is not answered.
            while (message := subscription.next_message()) is not None:
                subscription.respond_success(message)
                messages.put(message)

        with ThreadPoolExecutor(1) as pool:
            listening = pool.submit(listen)
            yield lambda: messages.get(timeout=60)
            subscription.close()
            with suppress(StreamCancelledError, StreamInactiveError):
                listening.result()


@_MODES
def test_pubsub_gets_it_as_an_event_with_its_id(
    is_async: bool, cluster: Cluster, topic: Callable[[], Any]
) -> None:
    cluster.use("message_graphs:published", is_async)
    log = cluster.worker().ask("call", "thread", {"log": [], "url": "pubsub"})["log"]
    messages = [topic() for _ in range(3)]
    assert [message.id() for message in messages] == log[:3]
    assert [message.data() for message in messages[:2]] == [{"order": 7}, "text"]
    assert messages[2].raw_data() == b"\x00"
    assert messages[0].type() == "order"
    assert _letters(cluster).list() == []


def test_an_unknown_pubsub_refuses_it(cluster: Cluster, topic: Callable[[], Any]) -> None:
    cluster.use("message_graphs:published")
    log = cluster.worker().ask("call", "thread", {"log": [], "url": "nowhere"})["log"]
    assert [topic().id(), topic().id()] == log[:2]
    (letter,) = _letters(cluster).list()
    assert (letter.message_id, letter.destination) == (log[2], "nowhere/orders")
    assert "pubsub nowhere is not found" in letter.error


@pytest.mark.parametrize(
    "url", ["ftp://host/", "http:///hook", "http://host/a b", "http://host/\n"]
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="is no http or https address"):
        webhook(url, {})


def test_a_thread_of_a_node_tells_too(cluster: Cluster, receiver: Receiver) -> None:
    cluster.use("message_graphs:in_thread")
    cluster.worker().ask("call", "thread", _input(receiver))
    assert receiver.bodies == ["thread"]


def test_nothing_is_sent_with_a_result_that_cannot_be_stored(
    cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use("message_graphs:unstorable")
    with pytest.raises(UnstorableValueError):
        cluster.worker().ask("call", "thread", _input(receiver))
    assert receiver.deliveries == []


def test_it_cannot_be_noted_where_nobody_would_send_it(
    cluster: Cluster, receiver: Receiver
) -> None:
    with pytest.raises(MessageNotNotedError, match="no recorded step"):
        publish("pubsub", "orders", 1)
    with pytest.raises(MessageNotNotedError, match="no recorded step"):
        webhook(receiver.url, 1)
    cluster.use("message_graphs:in_effect")
    with pytest.raises(MessageNotNotedError, match="not carried out again"):
        cluster.worker().ask("call", "thread", _input(receiver))
    assert receiver.deliveries == []


@pytest.mark.parametrize(
    ("note", "error"),
    [
        (lambda: publish("", "t", 1), ValueError),
        (lambda: publish("p", "t", {1, 2}), TypeError),
        (lambda: publish("p", "t", float("nan")), ValueError),
        (lambda: publish("p", "t", 1, metadata={"CloudEvent.Id": "x"}), ValueError),
        (lambda: publish("p", "t", 1, metadata={"rawPayload": "true"}), ValueError),
        (lambda: publish("p", "t", 1, metadata={"ttlInSeconds": 5}), TypeError),  # type: ignore
        (lambda: publish("p", "t", 1, content_type="application/cloudevents+json"), ValueError),
        (lambda: webhook("ftp://x", 1), ValueError),
        (lambda: webhook("http://x"), TypeError),
        (lambda: webhook("http://x", 1, data=b""), TypeError),
        (lambda: webhook("http://x", 1, headers={"idempotency-Key": "x"}), ValueError),
        (lambda: webhook("http://x", 1, headers={"X": "a\r\nb"}), ValueError),
    ],
)
def test_what_cannot_be_sent_is_refused_at_once(note: Callable[[], Any], error: Any) -> None:
    with pytest.raises(error):
        note()


def test_steps_without_messages_leave_nothing(cluster: Cluster, receiver: Receiver) -> None:
    cluster.use("message_graphs:alone")
    cluster.worker().ask("call", "thread", _input(receiver))
    assert len(cluster.stored("/sent/")) == 1


# -- CrewAI


def _crew_died(cluster: Cluster, receiver: Receiver, point: str) -> WorkerProcess:
    cluster.effects.arm(point, "die")
    worker = cluster.worker()
    worker.send("call", "s", {"url": receiver.url})
    worker.wait_dead()
    return cluster.worker()


@pytest.mark.parametrize("point", ["tell noted", "main.crew.task0!tool.0 recorded"])
def test_a_tool_sends_once(point: str, cluster: Cluster, receiver: Receiver) -> None:
    cluster.use_crew("message_graphs:crew", points=True, program="crew_points")
    worker = _crew_died(cluster, receiver, point)
    assert worker.ask("call", "s", {"url": receiver.url})["raw"] == "done"
    assert receiver.bodies == _both(receiver.bodies[0]["attempt"])
    assert all(ids == receiver.ids for ids in _noted(cluster))


@pytest.mark.parametrize("crew", ["crew", "model"])
def test_a_receiver_that_is_away_holds_a_crew_up(
    crew: str, cluster: Cluster, receiver: Receiver
) -> None:
    cluster.use_crew(f"message_graphs:{crew}")
    receiver.stop()
    worker = cluster.worker()
    worker.ask("begin", "s", {"url": receiver.url})
    cluster.effects.wait("tell noted")
    run = cluster.run_of("s")
    until(lambda: "MessageUndelivered" in (worker.ask("custom_status", run) or ""), 60)
    receiver.start()
    assert worker.ask("result", "s")["raw"] == "done"
    assert receiver.bodies == _both(receiver.bodies[0]["attempt"])
    assert _noted(cluster) == [receiver.ids]


@pytest.mark.parametrize("point", ["method", "noted"])
def test_the_method_of_a_flow_sends_once(point: str, cluster: Cluster, receiver: Receiver) -> None:
    cluster.use_crew("message_graphs:flow")
    worker = _crew_died(cluster, receiver, point)
    found = worker.ask("call", "s", {"url": receiver.url})
    assert receiver.bodies == [{"from": "flow"}]
    assert receiver.ids == [found]
