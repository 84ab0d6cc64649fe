"""`make bench-load`: many runs at once through one sidecar, against bare activities.

The same number of workflows, of activities in each and of those at once, in the same worker. Every
step of every run is counted: exits non-zero when a run is lost, a step ran twice, or the bar is
missed. The last line is the summary.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from benchmarks.bare import Bare
from benchmarks.timing import Bar, conclude
from dapr_runners.engine import default_worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.sidecar import EmbeddedSidecar

UNLIMITED = {"recursion_limit": 1_000_000}


class State(TypedDict):
    """``run``: its number; ``n``: steps done; ``steps``: steps to do."""

    run: int
    n: int
    steps: int


class Executions:
    """How often each step of each run was executed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[tuple[int, int]] = Counter()

    def node(self, state: State) -> dict[str, int]:
        """A trivial node."""
        with self._lock:
            self.counts[state["run"], state["n"]] += 1
        return {"n": state["n"] + 1}


def main() -> int:
    """Run the benchmark; 0 when every bar is met."""
    options = _options()
    if options.sidecar == "dapr":
        return conclude(_measure(options))
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedSidecar(Path(folder) / "bench.db") as sidecar,
    ):
        os.environ.update(sidecar.env())
        return conclude(_measure(options))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sidecar", choices=("embedded", "dapr"), default="embedded")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def _measure(options: argparse.Namespace) -> list[Bar]:
    executions = Executions()
    runner = DaprWorkflowGraphRunner(_graph(executions), name="bench-load")
    runner.start()
    worker: Any = default_worker()
    bare = Bare(worker._runtime, worker.client, polls=options.sidecar == "dapr")
    runs, steps = options.runs, options.steps
    ratios: list[float] = []
    lost = twice = 0
    with ThreadPoolExecutor(runs) as callers:
        for number in range(options.rounds + 1):
            floor = _timed(lambda: bare.many_chains(runs, steps))
            executions.counts.clear()
            began = time.perf_counter()
            inputs = [{"run": each, "n": 0, "steps": steps} for each in range(runs)]
            results = list(callers.map(lambda value: runner.invoke(value, UNLIMITED), inputs))
            ours = time.perf_counter() - began
            lost += sum(result["n"] != steps for result in results)
            lost += runs * steps - len(executions.counts)
            twice += sum(count - 1 for count in executions.counts.values())
            if number == 0:
                continue  # to warm up
            ratios.append(ours / floor)
            total = runs * steps
            print(f"bare {total / floor:6.0f}, runner {total / ours:6.0f} activities a second")
    runner.shutdown()
    what = f"{runs} runs of {steps} steps at once"
    return [
        Bar(f"{what}: lost steps and wrong results", lost, 0),
        Bar(f"{what}: steps executed again", twice, 0),
        Bar(f"{what}: bare activities/s to ours", median(ratios), 1.2),
    ]


def _graph(executions: Executions) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", executions.node)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", lambda s: "node" if s["n"] < s["steps"] else END)
    return builder.compile()


def _timed(call: Any) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
