"""A run in the middle of a node that the program, when it starts again, no longer has: its callers
are told, and the run goes on as soon as there is a worker that has the node."""

import pytest
from harness.cluster import Cluster

from dapr_runners.langgraph import GraphChangedError


@pytest.mark.parametrize(
    ("graph", "later", "dies_in", "missing"),
    [
        ("chain", "without_middle", "middle", "middle"),
        ("nested", "no_longer_nested", "inner", "sub/inner"),
        ("fan_out", "without_right", "right", "right"),
    ],
)
def test_callers_are_told_and_the_run_waits_for_the_program(
    graph: str, later: str, dies_in: str, missing: str, cluster: Cluster
) -> None:
    cluster.use(f"chain_graphs:{graph}")
    cluster.effects.arm(f"{dies_in} in", "die")
    first = cluster.worker()
    first.send("call", "thread", {"log": []})
    first.wait_dead()

    changed = cluster.worker(graph=f"chain_graphs:{later}")
    with pytest.raises(GraphChangedError) as caught:
        changed.ask("call", "thread", {"log": []})
    run = cluster.run_of("thread")
    assert str(caught.value) == (
        f"The run {run!r} is in the middle of node {missing!r}, which the graph of runner "
        "'acceptance' no longer has, so the run cannot go on with this program. Start a program "
        "whose graph has the node, or cancel the run."
    )
    assert changed.ask("status", run) == "RUNNING"
    changed.kill()

    right = cluster.worker()
    result = right.ask("call", "thread", {"log": []}, seconds=60)
    names = {"chain": ["first", "middle", "last"], "fan_out": ["first", "left", "right"]}
    assert result["log"] == names.get(graph, ["first", "first", "inner"])
    assert cluster.effects.count("first start") == 1
