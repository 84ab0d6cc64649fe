"""A tool that charges does so once, whenever its worker is killed."""

import pytest
from harness.cluster import Cluster

from dapr_runners.effects import EffectUnknownError

pytestmark = pytest.mark.timeout(240)


def _killed_at(cluster: Cluster, point: str) -> None:
    cluster.effects.arm(point, "die")
    worker = cluster.worker()
    worker.send("call", "s")
    worker.wait_dead()


@pytest.mark.parametrize("point", ["about to charge", "charged", "cashier answers"])
@pytest.mark.parametrize("crew", ["reconciled", "method"])
def test_a_tool_charges_once(crew: str, point: str, cluster: Cluster) -> None:
    cluster.use_crew(f"effect_crews:{crew}")
    if point == "cashier answers":  # the second time, when it has the receipt
        cluster.effects.arm(point, "go", "die")
        worker = cluster.worker()
        worker.send("call", "s")
        worker.wait_dead()
    else:
        _killed_at(cluster, point)
    assert cluster.worker().ask("call", "s")["raw"] == "paid"
    assert cluster.effects.count("charge") == 1


def test_what_nobody_knows_is_not_repeated(cluster: Cluster) -> None:
    cluster.use_crew("effect_crews:plain")
    _killed_at(cluster, "charged")
    worker = cluster.worker()
    for command in ("call", "resume"):
        with pytest.raises(EffectUnknownError) as caught:
            worker.ask(command, "s")
        assert (caught.value.step, caught.value.effect) == ("charge", "charge")
    assert worker.ask("status", cluster.run_of("s")) == "RUNNING"
    assert cluster.effects.count("charge") == 1


@pytest.mark.parametrize(
    "point", ["method", "about to charge", "charged", "recorded", "clerk asked"]
)
def test_an_effect_in_the_method_of_a_flow_happens_once(point: str, cluster: Cluster) -> None:
    cluster.use_crew("effect_crews:flow")
    _killed_at(cluster, point)
    assert cluster.worker().ask("call", "s") == "told of receipt for order 7"
    assert cluster.effects.count("charge") == 1


def test_effects_of_hooks_and_guardrails_happen_once(cluster: Cluster) -> None:
    """What calls them runs again in every process that goes on with the run."""
    cluster.use_crew("effect_crews:guarded")
    caller = cluster.caller()
    caller.send("call", "s")
    for point in ("searched a0", "writer asked"):
        cluster.effects.arm(point, "die", "go")
        cluster.worker().wait_dead()
    cluster.worker()
    assert caller.reply(60)["raw"] == "done"
    count = cluster.effects.count
    assert (count("hook runs"), count("guardrail runs")) == (3, 2)
    assert [count(f"audit {what}") for what in ("kickoff", "hook", "guardrail")] == [1, 1, 1]
