"""A charge is made once, whenever its worker is killed; what nobody knows stops the run.

The charges are counted by another process. Workers are killed with SIGKILL.
"""

import pytest
from harness.cluster import Cluster
from harness.deadline import until
from harness.processes import WorkerDiedError

from dapr_runners.effects import EffectUnknownError

pytestmark = pytest.mark.timeout(240)
_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
_RESULT = ["prepared", "receipt for order 7", "finalized"]


def _killed_at(cluster: Cluster, point: str) -> None:
    cluster.effects.arm(point, "die")
    worker = cluster.worker()
    worker.send("call", "thread", {"log": []})
    worker.wait_dead()
    with pytest.raises(WorkerDiedError):
        worker.reply()


def _keys(cluster: Cluster) -> list[str]:
    return [event["key"] for event in cluster.effects.events() if event["point"] == "charge"]


@_MODES
@pytest.mark.parametrize("graph", ["reconciled", "reconciled_beside"])
@pytest.mark.parametrize(
    ("point", "lookups"), [("node", 0), ("about to charge", 1), ("charged", 1), ("recorded", 0)]
)
def test_a_reconciled_charge_is_made_once(
    point: str, lookups: int, graph: str, is_async: bool, cluster: Cluster
) -> None:
    cluster.use(f"effect_graphs:{graph}", is_async)
    _killed_at(cluster, point)
    assert cluster.worker().ask("call", "thread", {"log": []})["log"] == _RESULT
    assert cluster.effects.count("charge") == 1
    assert cluster.effects.count("lookup") == lookups


@_MODES
@pytest.mark.parametrize("graph", ["plain", "plain_beside", "undecided"])
def test_what_nobody_knows_is_not_repeated(graph: str, is_async: bool, cluster: Cluster) -> None:
    cluster.use(f"effect_graphs:{graph}", is_async)
    _killed_at(cluster, "charged")
    worker = cluster.worker()
    for caller in (worker, worker, cluster.caller()):
        with pytest.raises(EffectUnknownError) as caught:
            caller.ask("call", "thread", {"log": []})
        assert caught.value.run_id == cluster.run_of("thread")
        assert (caught.value.step, caught.value.effect) == ("charge", "charge")
        assert [caught.value.idempotency_key] == _keys(cluster)
    assert worker.ask("status", cluster.run_of("thread")) == "RUNNING"
    assert cluster.effects.count("charge") == 1
    assert cluster.effects.count("swallowed") == 0


@_MODES
def test_a_charge_that_may_be_repeated_has_the_same_key(is_async: bool, cluster: Cluster) -> None:
    cluster.use("effect_graphs:retried", is_async)
    _killed_at(cluster, "charged")
    assert cluster.worker().ask("call", "thread", {"log": []})["log"] == _RESULT
    first, second = _keys(cluster)
    assert first == second
    tokens = [e["token"] for e in cluster.effects.events() if e["point"] == "charge"]
    assert tokens == sorted(set(tokens))


@_MODES
def test_not_to_know_may_fail_the_run(is_async: bool, cluster: Cluster) -> None:
    cluster.use("effect_graphs:failing", is_async)
    _killed_at(cluster, "charged")
    worker = cluster.worker()
    with pytest.raises(EffectUnknownError):
        worker.ask("call", "thread", {"log": []})
    until(lambda: worker.ask("status", cluster.run_of("thread")) == "COMPLETED")
    assert cluster.effects.count("charge") == 1
