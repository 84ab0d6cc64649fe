"""Two workers on one sidecar: they share the work, and each takes over from the other."""

from collections import Counter

import pytest
from harness.cluster import Cluster
from harness.deadline import until
from harness.processes import WorkerProcess

_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
_NODES = [f"n{number}" for number in range(20)]
_LOG = ["first", *_NODES, "last"]


def _pids(cluster: Cluster, phase: str) -> dict[str, int]:
    """Who was first to reach ``phase`` of each node."""
    pids: dict[str, int] = {}
    for event in cluster.effects.events():
        name, _, reached = event["point"].partition(" ")
        if reached == phase:
            pids.setdefault(name, event["pid"])
    return pids


def _by_pid(workers: list[WorkerProcess]) -> dict[int, WorkerProcess]:
    return {worker.pid: worker for worker in workers}


@_MODES
def test_a_fan_out_spreads(is_async: bool, cluster: Cluster) -> None:
    cluster.use("chain_graphs:twenty", is_async)
    workers = _by_pid([cluster.worker(), cluster.worker()])
    result = cluster.caller().ask("call", "thread", {"log": []})
    assert sorted(result["log"]) == sorted(_LOG)
    shares = Counter(_pids(cluster, "start")[name] for name in _NODES)
    assert set(shares) == set(workers)
    assert min(shares.values()) >= 5


@_MODES
def test_one_dies_in_the_middle(is_async: bool, cluster: Cluster) -> None:
    cluster.use("chain_graphs:twenty", is_async)
    held = _NODES[:10]
    # What an async node waits for holds its loop: one node of each worker will do there.
    for name in held if not is_async else held[:2]:
        cluster.effects.arm(f"{name} in", "hold")
    workers = _by_pid([cluster.worker(), cluster.worker()])
    caller = cluster.caller()
    caller.send("call", "thread", {"log": []})
    for name in held[:2]:
        cluster.effects.wait(f"{name} in")
    pids = _pids(cluster, "in")
    victim = pids[held[0]]
    if not is_async:
        for name in held:
            cluster.effects.wait(f"{name} in")
        run = cluster.run_of("thread")
        done = f"dr/run/{run}/1:"
        until(
            lambda: sum("/a/" not in key for key in cluster.stored(done)) == len(_NODES) - len(held)
        )
        pids = _pids(cluster, "in")
    workers[victim].kill()
    for name in held:
        cluster.effects.release(f"{name} in")
    assert sorted(caller.reply()["log"]) == sorted(_LOG)
    starts = {name: cluster.effects.count(f"{name} start") for name in _NODES}
    lost = {name for name in held if pids.get(name) == victim}
    if is_async:
        assert max(starts.values()) <= 2
    else:
        assert starts == {name: 1 + (name in lost) for name in _NODES}
    assert cluster.effects.count("first start") == 1


@_MODES
@pytest.mark.parametrize("point", ["fuse middle", "step n3", "step n4"])
def test_one_dies_when_it_has_recorded_a_step(point: str, is_async: bool, cluster: Cluster) -> None:
    """The other gets the step, and may hold the plan that it belongs to: it does not run again."""
    graph, log = ("chain", ["first", "middle", "last"]) if "middle" in point else ("twenty", _LOG)
    cluster.use(f"chain_graphs:{graph}", is_async, points=True)
    node = point.partition(" ")[2]
    workers = [cluster.worker(), cluster.worker()]
    caller = cluster.caller()
    for number in range(4):  # the one that dies has made the plan, or has not
        cluster.effects.arm(f"1 {point} recorded", "die")
        result = caller.ask("call", f"thread-{number}", {"log": []})
        assert sorted(result["log"]) == sorted(log)
        assert cluster.effects.count(f"{node} start") == number + 1
        (dead,) = until(lambda: [worker for worker in workers if not worker.is_alive()])
        workers.remove(dead)
        workers.append(cluster.worker())


@pytest.mark.parametrize(
    "is_async", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["sync", "async"]
)
def test_one_freezes_and_comes_back(is_async: bool, cluster: Cluster) -> None:
    cluster.use("chain_graphs:chain", is_async)
    cluster.effects.arm("middle in", "hold")
    workers = _by_pid([cluster.worker(), cluster.worker()])
    caller = cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait("middle in")
    frozen = workers[_pids(cluster, "in")["middle"]]
    frozen.freeze()
    # The sidecar takes its stream for dead when its keepalive stays unanswered: 15 seconds.
    assert caller.reply(60)["log"] == ["first", "middle", "last"]
    assert cluster.effects.count("middle start") == 2
    before = caller.ask("history", "thread")

    cluster.effects.release("middle in")
    frozen.thaw()
    cluster.effects.wait("middle end", 2)
    # It still is a worker, and what it made of the step it held is nowhere.
    assert frozen.ask("call", "other", {"log": []})["log"] == ["first", "middle", "last"]
    assert caller.ask("history", "thread") == before
    assert caller.ask("call", "thread", {"log": ["more"]})["log"][:4] == [
        *["first", "middle", "last"],
        "more",
    ]
    assert cluster.effects.count("last start") == 3
