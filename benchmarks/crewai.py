"""`make bench-crew`: what a durable crew costs, as ratios to bare activities in the same run.

Exits non-zero when a bar is missed; the last line is the summary.
"""

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

from benchmarks.bare import Bare
from benchmarks.crews import rounds
from benchmarks.memory import resident
from benchmarks.timing import Bar, conclude, interleaved, per
from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.engine import RunNotFoundError, default_worker
from dapr_runners.sidecar import EmbeddedSidecar

ROUNDS = 20
OLD = 200
WAITING = 50
SHORT, LONG = 5, 105
_POOLS = ("DurableTask", "dapr-runners-", "CrewAISyncHandler", "asyncio_")


def main() -> int:
    """Run the benchmark; 0 when every bar is met."""
    options = _options()
    os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"
    with tempfile.TemporaryDirectory() as folder:
        if options.sidecar == "embedded":
            with EmbeddedSidecar(Path(folder) / "bench.db") as sidecar:
                os.environ.update(sidecar.env())
                bars = _measure(options)
        else:
            bars = _measure(options)
    return conclude(bars)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sidecar", choices=("embedded", "dapr"), default="embedded")
    parser.add_argument("--rounds", type=int, default=15, help="of each measurement")
    return parser.parse_args()


def _measure(options: argparse.Namespace) -> list[Bar]:
    clock: list[float] = []
    runner = DaprWorkflowCrewRunner(rounds(clock), name="bench-rounds")
    asking = DaprWorkflowCrewRunner(rounds(human_input=True), name="bench-asking")
    for each in (runner, asking):
        each.start()
    worker: Any = default_worker()
    # What the imports made is left out of garbage collections, for the bare activities too.
    gc.collect()
    gc.freeze()
    bare = Bare(worker._runtime, worker.client, polls=options.sidecar == "dapr")
    bars = [
        *_rounds(options, runner, bare),
        *_age(options, runner, clock),
        *_rebuild(options, asking),
        *_waiting(asking),
    ]
    for each in (runner, asking):
        each.shutdown()
    return bars


def _rounds(options: Any, runner: Any, bare: Bare) -> list[Bar]:
    """What a round costs beyond what CrewAI itself takes for it."""
    inputs = {"rounds": ROUNDS}
    times = interleaved(
        options.rounds,
        {
            "bare": lambda: bare.chain(ROUNDS),
            "plain CrewAI": lambda: rounds()(inputs).kickoff(inputs=inputs),
            "runner": lambda: runner.kickoff(inputs),
        },
    )
    for name, values in times.items():
        print(f"{name:<58} {per(values, ROUNDS):8.2f} ms a round")
    added = [
        (durable - plain) / activity
        for durable, plain, activity in zip(
            times["runner"], times["plain CrewAI"], times["bare"], strict=True
        )
    ]
    return [Bar("a round, beyond CrewAI's own time, in bare activities", median(added), 2.3)]


def _age(options: Any, runner: Any, clock: list[float]) -> list[Bar]:
    """The cost of rounds around the 200th against those around the 5th, within each run."""
    inputs = {"rounds": OLD + 10}
    ratios: list[float] = []
    for _ in range(max(3, options.rounds // 3)):
        for name, kickoff in (
            ("plain CrewAI", lambda: rounds(clock)(inputs).kickoff(inputs=inputs)),
            ("runner", lambda: runner.kickoff(inputs)),
        ):
            clock.clear()
            kickoff()
            gaps = [(late - early) * 1000 for early, late in pairwise(clock)]
            # A round costs more late in a workflow's history, which begins anew every 12 rounds.
            young, old = median(gaps[:24]), median(gaps[OLD - 24 : OLD])
            name += ": a round around the 5th / the 200th"
            print(f"{name:<58} {young:8.2f} / {old:.2f} ms")
        ratios.append(old / young)
    return [Bar("a round around the 200th, in rounds around the 5th", median(ratios), 1.2)]


def _rebuild(options: Any, asking: Any) -> list[Bar]:
    """What a recorded step costs when a run goes on where its program is not in memory: a long run
    that waited for a person, against a short one."""
    times: dict[int, list[float]] = {SHORT: [], LONG: []}
    for _ in range(max(3, options.rounds // 3)):
        for count, found in times.items():
            (session,) = asyncio.run(_wait_for_people(asking, 1, count))
            (question,) = asking.pending(session)
            began = time.perf_counter()
            asking.answer(session, question.key, "")
            asking.resume(session)
            found.append((time.perf_counter() - began) * 1000)
    steps = 2 * (LONG - SHORT)
    a_step = (median(times[LONG]) - median(times[SHORT])) / steps
    return [Bar("a recorded step of a run whose program is driven again", a_step, 5.0, unit=" ms")]


def _waiting(asking: Any) -> list[Bar]:
    """What runs that wait for people hold of the process."""
    # The first ones make what is made once: pools, caches.
    asyncio.run(_wait_for_people(asking, WAITING, 1))
    threads, before = _threads(), resident()
    asyncio.run(_wait_for_people(asking, WAITING, 1))
    more, after = _threads() - threads, resident()
    name = f"resident memory with {WAITING} / {2 * WAITING} runs that wait"
    print(f"{name:<58} {before:8.1f} / {after:.1f} MiB")
    return [
        Bar(f"threads of {WAITING} more runs that wait for people", more, 0),
        Bar(f"memory with {WAITING} more runs that wait for people", after / before, 1.01),
    ]


def _threads() -> int:
    """Threads of this process, but for those of pools, which are made as they are needed."""
    names = (thread.name for thread in threading.enumerate())
    return sum(not name.startswith(_POOLS) for name in names)


async def _wait_for_people(asking: Any, count: int, steps: int) -> list[str]:
    """Sessions of ``count`` new runs, which have begun to wait for a person."""
    sessions = [uuid4().hex for _ in range(count)]
    calls = [
        asyncio.create_task(asking.akickoff({"rounds": steps}, session_id=session))
        for session in sessions
    ]
    await asyncio.to_thread(_until_all_ask, asking, sessions)
    for call in calls:
        call.cancel()  # the run goes on
    await asyncio.gather(*calls, return_exceptions=True)
    return sessions


def _until_all_ask(asking: Any, sessions: list[str]) -> None:
    left = set(sessions)
    while left:
        left = {session for session in left if not _asks(asking, session)}
        time.sleep(0.01)


def _asks(asking: Any, session: str) -> bool:
    try:
        return bool(asking.pending(session))
    except RunNotFoundError:
        return False  # it is about to begin


if __name__ == "__main__":
    sys.exit(main())
