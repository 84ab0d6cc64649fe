"""`make soak`: thousands of short runs while worker and sidecar are killed every few seconds.

Every run has to end with its result, no step may run again once it is recorded, and the memory of
worker and sidecar and the size of the database have to level off, with retention on: in the last
third of the time they may be a quarter more than in the middle third. The seed is printed; the same
seed kills at the same times, where the runs have gone on since the kill before. Exits non-zero when
something does not hold.
"""

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.timing import Bar, conclude
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from dapr_runners.engine import Worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import SidecarUnreachableError, StateStore

STEPS = 3
CALLERS = 32
LATER_SECONDS = 120.0
"""How long a run may take that was begun before the time was up."""
RETENTION_SECONDS = 5.0
KILL_SECONDS = 4.0, 12.0
WORKED_BYTES = 1000
"""Notes of some 150 steps: so many have begun between two kills. A step that is cut each time it
begins would be taken for one that kills."""
NOISE_MIB = 16.0
"""A smaller database is mostly the log that SQLite keeps beside it."""


class State(TypedDict, total=False):
    run: int
    sum: int


def runner_at(address: str, executions: str, **options: Any) -> DaprWorkflowGraphRunner:
    """The runner of a chain, each step of which notes in the file that it begins."""

    def node(number: int) -> Any:
        def step(state: State) -> State:
            with Path(executions).open("a") as file:
                file.write(f"{state['run']} {number}\n")
            return {"sum": state.get("sum", 0) + state["run"] + number}

        return step

    builder, before = StateGraph(State), START
    for number in range(STEPS):
        builder.add_node(f"step{number}", node(number))
        builder.add_edge(before, f"step{number}")
        before = f"step{number}"
    store, worker = StateStore(address=address), Worker(address)
    graph = builder.compile(checkpointer=False)
    return DaprWorkflowGraphRunner(graph, name="soak", store=store, worker=worker, **options)


class Soak:
    """The processes, and what was seen of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.executions = folder / "executions"
        self.executions.touch()
        self.sidecar = EmbeddedSidecar(folder / "soak.db").start()
        self.samples: dict[str, list[float]] = defaultdict(list)
        self.kills = 0
        self.over = threading.Event()
        self._random = random.Random(seed)
        self._noted_at_kill = 0
        self._worker = self._new_worker()

    def _new_worker(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "chaos.soak", "--worker", self.sidecar.address]
        return subprocess.Popen([*command, str(self.executions)])

    def kill_now_and_then(self) -> None:
        """Until it is over."""
        while not self.over.wait(self._random.uniform(*KILL_SECONDS)):
            if not self._has_worked():
                continue
            self.kills += 1
            if self._random.random() < 0.5:
                self._worker.kill()
                self._worker.wait()
                self._worker = self._new_worker()
            else:
                self.sidecar.kill()
                self.sidecar.start()
            self._noted_at_kill = self._noted()

    def _noted(self) -> int:
        return self.executions.stat().st_size

    def _has_worked(self) -> bool:
        """Whether the runs have gone on since something was killed."""
        return self._noted() - self._noted_at_kill > WORKED_BYTES

    def sample(self) -> None:
        """Until it is over."""
        while not self.over.wait(0.5):
            if not self._has_worked():
                continue  # who has just begun is small
            for name, pid in (("worker", self._worker.pid), ("sidecar", self.sidecar.pid)):
                if pid is not None and (memory := resident(pid)) > 0:
                    self.samples[f"resident memory of the {name}, MiB"].append(memory)
            size = sum(each.stat().st_size for each in self.sidecar.path.parent.glob("soak.db*"))
            self.samples["size of the database, MiB"].append(size / 2**20)

    def close(self) -> None:
        """End the processes."""
        self._worker.kill()
        self._worker.wait()
        self.sidecar.stop()


def resident(pid: int) -> float:
    """MiB; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / 2**20


def main() -> int:
    """0 when everything holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--minutes", type=float, default=20.0, help="no run is begun after that")
    parser.add_argument("--at-least", type=int, default=0, help="runs, however long they take")
    parser.add_argument("--growth", type=float, default=1.25, help="of the last third, at most")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return _work(*options.worker)
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seed)
        try:
            return conclude(_bars(soak, options))
        finally:
            soak.over.set()
            soak.close()


def _work(address: str, executions: str) -> int:
    runner = runner_at(address, executions, retention=RETENTION_SECONDS)
    while True:
        try:
            runner.serve()
            return 0
        except SidecarUnreachableError:
            time.sleep(0.2)  # it was killed, too: as whoever restarts programs would


def _bars(soak: Soak, options: argparse.Namespace) -> list[Bar]:
    caller = runner_at(soak.sidecar.address, str(soak.executions))
    caller.connect()
    give_up_at = time.monotonic() + options.minutes * 60

    def call(run: int) -> bool | None:
        if time.monotonic() > give_up_at and run >= options.at_least:
            return None
        late = max(time.monotonic(), give_up_at) + LATER_SECONDS
        while time.monotonic() < late:
            try:
                result = caller.invoke({"run": run}, thread_id=f"run-{run}")
            except SidecarUnreachableError:
                time.sleep(0.2)
                continue
            return result["sum"] == STEPS * run + sum(range(STEPS))
        return False

    threads = [threading.Thread(target=each) for each in (soak.kill_now_and_then, soak.sample)]
    for thread in threads:
        thread.start()
    with ThreadPoolExecutor(CALLERS) as pool:
        results = list(pool.map(call, range(options.runs)))
    soak.over.set()
    for thread in threads:
        thread.join()
    caller.shutdown()
    ended = [result for result in results if result is not None]
    print(f"{len(ended)} runs, {soak.kills} kills")
    return [
        Bar("runs that ended", len(ended), 1, at_least=True),
        Bar("wrong results, and runs that did not end", ended.count(False), 0),
        Bar("recorded steps that ran again", _again(soak.executions), 0),
        *(Bar(f"{name}: last third to middle", _growth(all_), options.growth)
          for name, all_ in soak.samples.items()),
    ]  # fmt: skip


def _again(executions: Path) -> int:
    """How often a step began after the one that follows it had: it was recorded by then."""
    last: dict[str, int] = defaultdict(int)
    count = 0
    for line in executions.read_text().splitlines():
        run, number = line.split()
        count += int(number) < last[run]
        last[run] = max(last[run], int(number))
    return count


def _growth(samples: list[float]) -> float:
    third = len(samples) // 3
    middle, end = samples[third : 2 * third], samples[2 * third :]
    return median(end) / max(median(middle), NOISE_MIB)


if __name__ == "__main__":
    sys.exit(main())
