"""What the embedded sidecar itself costs: bare workflows of no-op activities, one worker.

    python benchmarks/sidecar.py [--steps 100] [--runs 50] [--repeat 3]

The worker shares the machine with the sidecar, as it does in use, and is most of the cost: it
replays a workflow's history at every step, so a longer chain costs more a step.
"""

import argparse
import logging
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from dapr.ext.workflow import (
    DaprWorkflowClient,
    DaprWorkflowContext,
    WorkflowActivityContext,
    WorkflowRuntime,
)

from dapr_runners.sidecar import EmbeddedSidecar


async def noop(_: WorkflowActivityContext, value: int) -> int:
    return value


def chain(context: DaprWorkflowContext, steps: int) -> Generator[Any, Any, int]:
    for step in range(steps):
        yield context.call_activity("noop", input=step)
    return steps


def renewed(context: DaprWorkflowContext, plan: dict[str, int]) -> Generator[Any, Any, int]:
    """A chain that continues as new every ``every`` steps."""
    for step in range(min(plan["every"], plan["left"])):
        yield context.call_activity("noop", input=step)
    left = plan["left"] - plan["every"]
    if left > 0:
        context.continue_as_new({"every": plan["every"], "left": left})
    return 0


def measure(client: DaprWorkflowClient, workflow: Any, inputs: list[Any]) -> float:
    """Seconds until workflows with these inputs, all started at once, are complete."""
    began = time.perf_counter()
    ids = [client.schedule_new_workflow(workflow, input=value) for value in inputs]
    for instance_id in ids:
        state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=120)
        if state is None or state.runtime_status.name != "COMPLETED":
            raise SystemExit(f"{instance_id} did not complete: {state}")
    return time.perf_counter() - began


def commit_milliseconds(directory: Path) -> float:
    """What the disk takes to make a small SQLite transaction durable."""
    db = sqlite3.connect(directory / "commit.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t (v)")
    began = time.perf_counter()
    for number in range(200):
        db.execute("INSERT INTO t VALUES (?)", (number,))
    seconds = time.perf_counter() - began
    db.close()
    return seconds / 200 * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    steps, runs = options.steps, options.runs
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedSidecar(Path(directory) / "sidecar.db") as sidecar,
    ):
        address = {"host": "127.0.0.1", "port": str(sidecar.grpc_port)}
        runtime = WorkflowRuntime(**address)
        runtime.register_activity(noop, name="noop")
        runtime.register_workflow(chain, name="chain")
        runtime.register_workflow(renewed, name="renewed")
        runtime.start()
        client = DaprWorkflowClient(**address)
        measure(client, chain, [5])

        say = sys.stdout.write
        say(f"a commit takes {commit_milliseconds(Path(directory)):.2f} ms here\n")
        single: list[float] = []
        for _ in range(options.repeat):
            single.append(measure(client, chain, [steps]) / steps * 1e3)
            say(f"chain of {steps}: {single[-1]:.2f} ms/step\n")
        long = measure(client, chain, [steps * 4]) / (steps * 4) * 1e3
        say(f"chain of {steps * 4}: {long:.2f} ms/step\n")
        again = measure(client, renewed, [{"every": 25, "left": steps * 4}]) / (steps * 4) * 1e3
        say(f"chain of {steps * 4}, continued as new every 25: {again:.2f} ms/step\n")
        many: list[float] = []
        for _ in range(options.repeat):
            many.append(runs * 20 / measure(client, chain, [20] * runs))
            say(f"{runs} chains of 20 at once: {many[-1]:.0f} activities/s\n")
        say(
            f"chain {statistics.median(single):.2f} ms/step, "
            f"{runs} at once {statistics.median(many):.0f} activities/s\n"
        )
        sys.stdout.flush()
        logging.disable()
        runtime.shutdown()
        client.close()


if __name__ == "__main__":
    main()
