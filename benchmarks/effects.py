"""`make bench-effects`: what a declared effect costs, beside the same step without one.

Exits non-zero when a bar is missed; the last line is the summary.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph

from benchmarks.graphs import Chain
from benchmarks.timing import Bar, conclude, interleaved, per, ratio
from dapr_runners.effects import effect
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import StateStore

STEPS = 25
UNLIMITED = {"recursion_limit": 1_000_000}
OF_EFFECTS = ("/effect/", "/begun/", "/answer/")
"""What the state keys of effects have in them."""


class CountingStore(StateStore):
    """Counts the calls that write something of an effect."""

    writes = 0

    def _ask(self, call: Any, request: Any) -> Any:
        self._count(request)
        return super()._ask(call, request)

    def _begin(self, call: Any, request: Any) -> Any:
        self._count(request)
        return super()._begin(call, request)

    def _count(self, request: Any) -> None:
        if type(request).__name__ == "SaveStateRequest":
            keys = [state.key for state in request.states]
            self.writes += any(part in key for key in keys for part in OF_EFFECTS)


def main() -> int:
    """Run the benchmark; 0 when every bar is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedSidecar(Path(folder) / "bench.db") as sidecar,
    ):
        os.environ.update(sidecar.env())
        return conclude(_measure(options.rounds))


def _measure(rounds: int) -> list[Bar]:
    stores = {name: CountingStore() for name in ("without", "with an effect")}
    runners = {
        "without": DaprWorkflowGraphRunner(
            _chain(_act), name="bench-without", store=stores["without"]
        ),
        "with an effect": DaprWorkflowGraphRunner(
            _chain(effect(_act)), name="bench-with", store=stores["with an effect"]
        ),
    }
    for runner in runners.values():
        runner.start()
    state = {"n": 0, "steps": STEPS}
    calls = {
        name: (lambda runner=runner: runner.invoke(state, UNLIMITED))
        for name, runner in runners.items()
    }
    times = interleaved(rounds, calls)
    for name, values in times.items():
        print(f"{'a step ' + name:<58} {per(values, STEPS):8.2f} ms")
    writes = {name: _writes(calls[name], stores[name]) for name in calls}
    for runner in runners.values():
        runner.shutdown()
    print(f"{'a step with an effect, in steps without':<58} {_ratio(times):8.2f}")
    return [
        Bar("state writes of a step that declares no effect", writes["without"], 0.0, unit=""),
        Bar("state writes of an effect", writes["with an effect"], 3.0, unit=""),
    ]


def _ratio(times: dict[str, list[float]]) -> float:
    return ratio(times, "with an effect", "without")


def _writes(call: Any, store: CountingStore) -> float:
    """Calls that write something of an effect, a step."""
    before = store.writes
    call()
    return (store.writes - before) / STEPS


def _act(n: int) -> int:
    return n + 1


def _chain(act: Any) -> Any:
    builder = StateGraph(Chain)
    builder.add_node("node", lambda state: {"n": act(state["n"])})
    builder.add_edge(START, "node")
    builder.add_conditional_edges(
        "node", lambda state: "node" if state["n"] < state["steps"] else END, ["node", END]
    )
    return builder.compile()


if __name__ == "__main__":
    sys.exit(main())
