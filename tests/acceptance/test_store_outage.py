"""The sidecar, and with it the store, is away for two seconds in the middle of a run."""

import time

import pytest
from harness.cluster import Cluster
from harness.deadline import until


def _outage(cluster: Cluster) -> None:
    cluster.sidecar.kill()
    _start_later(cluster)


def _start_later(cluster: Cluster) -> None:
    end = time.monotonic() + 2
    until(lambda: time.monotonic() > end)
    cluster.sidecar.start()


@pytest.mark.parametrize(
    ("graph", "held", "is_async"),
    [
        ("chain", "middle", False),
        pytest.param("chain", "middle", True, marks=pytest.mark.slow),
        pytest.param("fan_out", "left", False, marks=pytest.mark.slow),
        ("fan_out", "left", True),
        ("nested", "inner", False),
        pytest.param("nested", "inner", True, marks=pytest.mark.slow),
    ],
)
def test_a_step_that_ends_meanwhile_is_recorded_and_not_repeated(
    graph: str, held: str, is_async: bool, cluster: Cluster
) -> None:
    cluster.use(f"chain_graphs:{graph}", is_async)
    cluster.effects.arm(f"{held} in", "hold")
    worker, caller = cluster.worker(), cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait(f"{held} in")
    cluster.sidecar.kill()
    cluster.effects.release(f"{held} in")
    cluster.effects.wait(f"{held} end")
    _start_later(cluster)
    assert held in caller.reply()["log"]
    assert worker.is_alive()
    starts = [event["point"] for event in cluster.effects.events() if "start" in event["point"]]
    assert len(starts) == len(set(starts)), "every step ran once"


def test_a_long_step_outlasts_several_outages(cluster: Cluster) -> None:
    cluster.use("chain_graphs:chain")
    cluster.effects.arm("middle in", "hold")
    cluster.worker()
    caller = cluster.caller()
    caller.send("call", "thread", {"log": []})
    cluster.effects.wait("middle in")
    for _ in range(3):
        _outage(cluster)
    cluster.effects.release("middle in")
    assert caller.reply(60)["log"] == ["first", "middle", "last"]
    assert cluster.effects.count("middle start") == 1
