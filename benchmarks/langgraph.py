"""`make bench`: what a durable step costs, as ratios to bare activities in the same run.

Exits non-zero when a bar is missed; the last line is the summary.
"""

import argparse
import gc
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks.bare import Bare
from benchmarks.graphs import chain, fan, three
from benchmarks.memory import resident
from benchmarks.timing import Bar, conclude, interleaved, per, ratio
from dapr_runners.engine import default_worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.sidecar import EmbeddedSidecar

STEPS, WIDTH = 50, 50
UNLIMITED = {"recursion_limit": 1_000_000}


def main() -> int:
    """Run the benchmark; 0 when every bar is met."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        if options.sidecar == "embedded":
            with EmbeddedSidecar(Path(folder) / "bench.db") as sidecar:
                os.environ.update(sidecar.env())
                bars = _measure(Path(folder), options)
        else:
            bars = _measure(Path(folder), options)
    return conclude(bars)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sidecar", choices=("embedded", "dapr"), default="embedded")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=10_000, help="finished runs for the memory bar")
    return parser.parse_args()


def _measure(folder: Path, options: argparse.Namespace) -> list[Bar]:
    runner = DaprWorkflowGraphRunner(chain(), name="bench-chain")
    fast = DaprWorkflowGraphRunner(chain(), name="bench-fast", steps_per_activity=50)
    wide = DaprWorkflowGraphRunner(fan(), name="bench-fan")
    small = DaprWorkflowGraphRunner(three(), name="bench-three")
    for each in (runner, fast, wide, small):
        each.start()
    worker: Any = default_worker()
    # What the imports made is left out of garbage collections, for the bare activities too.
    gc.collect()
    gc.freeze()
    bare = Bare(worker._runtime, worker.client, polls=options.sidecar == "dapr")
    with SqliteSaver.from_conn_string(str(folder / "plain.db")) as saver:
        bars = [
            *_steps(options, runner, fast, bare, chain(checkpointer=saver)),
            *_fan(options, wide, bare),
            *_age(options),
            *_three(options, small),
            *_throughput(options, bare),
            *_memory(options, small),
        ]
    for each in (runner, fast, wide, small):
        each.shutdown()
    return bars


def _steps(options: Any, runner: Any, fast: Any, bare: Bare, plain: Any) -> list[Bar]:
    state = {"n": 0, "steps": STEPS}
    threads = iter(range(1_000_000))

    def with_saver() -> None:
        plain.invoke(state, {**UNLIMITED, "configurable": {"thread_id": str(next(threads))}})

    times = interleaved(
        options.rounds,
        {
            "bare": lambda: bare.chain(STEPS),
            "runner": lambda: runner.invoke(state, UNLIMITED),
            "fast": lambda: fast.invoke(state, UNLIMITED),
            "plain LangGraph with its SQLite saver": with_saver,
        },
    )
    for name, values in times.items():
        print(f"{name:<58} {per(values, STEPS):8.2f} ms a superstep")
    limit = 1.6 if options.sidecar == "embedded" else 1.2
    return [
        Bar("superstep with one node, in bare activities", ratio(times, "runner", "bare"), limit),
        Bar("fast lane, 50 supersteps an activity", ratio(times, "fast", "bare"), 0.5),
    ]


def _fan(options: Any, wide: Any, bare: Bare) -> list[Bar]:
    times = interleaved(
        options.rounds,
        {
            "bare fan-out": lambda: bare.fan(WIDTH),
            "runner fan-out": lambda: wide.invoke({"width": WIDTH}),
        },
    )
    for name, values in times.items():
        print(f"{name + f' of {WIDTH}':<58} {per(values, 1):8.2f} ms")
    value = ratio(times, "runner fan-out", "bare fan-out")
    return [Bar(f"superstep of {WIDTH} parallel nodes, in bare fan-outs", value, 1.6)]


def _age(options: argparse.Namespace) -> list[Bar]:
    """The cost of a step around the 1,000th against that around the 10th, within each run."""
    times: list[float] = []
    runner = DaprWorkflowGraphRunner(chain(clock=times), name="bench-age")
    runner.start()
    ratios: list[float] = []
    for _ in range(max(3, options.rounds // 3)):
        times.clear()
        runner.invoke({"n": 0, "steps": 1010}, UNLIMITED)
        gaps = [(late - early) * 1000 for early, late in pairwise(times)]
        young, old = median(gaps[5:105]), median(gaps[900:1000])
        ratios.append(old / young)
    runner.shutdown()
    print(f"{'a step around the 50th / the 950th of a run':<58} {young:8.2f} / {old:.2f} ms")
    return [Bar("a step around the 950th, in steps around the 50th", median(ratios), 1.2)]


def _three(options: Any, small: Any) -> list[Bar]:
    times = interleaved(options.rounds, {"three": lambda: small.invoke({"n": 0, "steps": 0})})
    value = per(times["three"], 1)
    if options.sidecar == "dapr":
        print(f"{'a run of three trivial nodes':<58} {value:8.2f} ms")
        return []
    return [Bar("a run of three trivial nodes", value, 50.0, unit=" ms")]


def _throughput(options: Any, bare: Bare) -> list[Bar]:
    times = interleaved(5, {"many": lambda: bare.many_chains(50, 20)}, warm=1)
    rate = 50 * 20 / (per(times["many"], 1) / 1000)
    if options.sidecar != "embedded":
        print(f"{'activities a second, 50 runs at once':<58} {rate:8.0f}")
        return []
    return [Bar("activities a second, 50 runs at once", rate, 500, at_least=True)]


def _memory(options: Any, small: Any) -> list[Bar]:
    """Resident memory over the last half of many finished runs, against that over the first."""

    def run(count: int) -> None:
        for _ in range(count):
            small.invoke({"n": 0, "steps": 0})

    run(options.runs // 2)
    before = resident()
    run(options.runs - options.runs // 2)
    after = resident()
    name = f"resident memory after half / all of {options.runs} runs"
    print(f"{name:<58} {before:8.1f} / {after:.1f} MiB")
    return [
        Bar(f"memory over {options.runs} finished runs, second half to first", after / before, 1.05)
    ]


if __name__ == "__main__":
    sys.exit(main())
