"""More runs at work than are kept from turn to turn."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from run_helpers import MakeRunner, Node, chain

from dapr_runners.engine import _executions

pytestmark = pytest.mark.timeout(240)

RUNS, STEPS = 8, 30
"""Over a continue_as_new each."""


@pytest.mark.parametrize("kept", [0, 1])
def test_they_go_on_without(
    make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(_executions, "_KEPT", kept)
    nodes = [Node(f"n{number}") for number in range(STEPS)]
    runner = make_runner(chain(*nodes))
    with ThreadPoolExecutor(RUNS) as callers:
        results = list(callers.map(lambda x: runner.invoke({"x": x}), range(RUNS)))
    log = [node.name for node in nodes]
    assert results == [{"x": x, "log": log} for x in range(RUNS)]
    assert [node.executions for node in nodes] == [RUNS] * STEPS
