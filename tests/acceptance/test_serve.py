"""A worker program that gets SIGTERM: it takes no more work, ends its steps, and leaves."""

import itertools
import signal
from collections.abc import Callable

import pytest
from harness.cluster import Cluster
from harness.deadline import until

from signalling import send, send_beside

Send = Callable[[int, signal.Signals], None]
_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
_SENDS = pytest.mark.parametrize("send_it", [send, send_beside])
_PAIRS = pytest.mark.parametrize(
    ("one", "other"), list(itertools.product([signal.SIGTERM, signal.SIGINT], repeat=2))
)


def _pid_of(cluster: Cluster, point: str) -> set[int]:
    return {event["pid"] for event in cluster.effects.events() if event["point"] == point}


def _held(cluster: Cluster, is_async: bool = False) -> None:
    cluster.use("chain_graphs:chain", is_async)
    cluster.effects.arm("middle in", "hold")


@_MODES
def test_it_ends_its_step_and_begins_no_other(is_async: bool, cluster: Cluster) -> None:
    _held(cluster, is_async)
    first, caller = cluster.server(), cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait("middle in")
    first.terminate()
    second = cluster.server()
    caller_of_another = cluster.caller()
    caller_of_another.send("call", "other", {"log": []})
    cluster.effects.wait("middle start", 2)  # by the second, or held at the first until it is gone
    cluster.effects.release("middle in")
    assert first.reply() is None
    assert caller.reply()["log"] == ["first", "middle", "last"]
    assert caller_of_another.reply()["log"] == ["first", "middle", "last"]
    for point in ("first", "middle", "last"):
        assert cluster.effects.count(f"{point} start") == 2, "once in each of the two runs"
    assert _pid_of(cluster, "last start") == {second.pid}


def test_a_step_in_flight_is_cut_when_there_is_no_time_left(cluster: Cluster) -> None:
    _held(cluster)
    first, caller = cluster.server(grace=0.3), cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait("middle in")
    first.terminate()
    assert first.reply() is None
    first.kill()
    second = cluster.server()
    cluster.effects.wait("middle start", 2)
    cluster.effects.release("middle in")
    assert caller.reply()["log"] == ["first", "middle", "last"]
    assert _pid_of(cluster, "middle end") == {second.pid}


@_SENDS
@_PAIRS
def test_a_second_signal_cuts_at_once(
    one: signal.Signals, other: signal.Signals, send_it: Send, cluster: Cluster
) -> None:
    _held(cluster)
    first, caller = cluster.server(grace=3600), cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait("middle in")
    send_it(first.pid, one)
    send_it(first.pid, other)
    assert first.reply() is None
    cluster.effects.release("middle in")


@_SENDS
@_PAIRS
def test_two_signals_before_it_serves_cut_at_once(
    one: signal.Signals, other: signal.Signals, send_it: Send, cluster: Cluster
) -> None:
    _held(cluster)
    cluster.effects.arm("serving", "hold")
    first, caller = cluster.server(grace=3600), cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait("middle in")
    send_it(first.pid, one)
    send_it(first.pid, other)
    cluster.effects.release("serving")
    assert first.reply() is None
    cluster.effects.release("middle in")


@_SENDS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_that_has_nothing_to_do_leaves_at_once(
    number: signal.Signals, send_it: Send, cluster: Cluster
) -> None:
    cluster.use("chain_graphs:chain")
    first = cluster.server(grace=3600)
    send_it(first.pid, number)
    assert first.reply() is None
    until(lambda: cluster.worker().ask("call", "thread", {"log": []})["log"])
