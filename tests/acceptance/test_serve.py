"""A worker program that gets SIGTERM: it takes no more work, ends its steps, and leaves."""

import os
import signal

import pytest
from harness.cluster import Cluster
from harness.deadline import until

_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


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


def test_a_second_signal_cuts_at_once(cluster: Cluster) -> None:
    _held(cluster)
    first, caller = cluster.server(), cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait("middle in")
    first.terminate()
    os.kill(first.pid, signal.SIGINT)  # two alike might be taken for one
    assert first.reply() is None
    cluster.effects.release("middle in")


def test_one_that_has_nothing_to_do_leaves_at_once(cluster: Cluster) -> None:
    cluster.use("chain_graphs:chain")
    first = cluster.server(grace=3600)
    first.terminate()
    assert first.reply() is None
    until(lambda: cluster.worker().ask("call", "thread", {"log": []})["log"])
