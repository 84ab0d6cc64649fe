"""``dapr-runners list``: the runs a sidecar knows, and how far they are."""

import dataclasses
import enum
import heapq
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._options import AsJson, Port, Store
from dapr_runners.cli._overview import overview

if TYPE_CHECKING:
    from dapr_runners.engine import Overview, RunSummary

_console = Console(highlight=False, soft_wrap=True)
_COLOURS = {"completed": "green", "failed": "red", "parked": "red", "held up": "red"}


class Status(enum.Enum):
    """What the status of a run can be."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    PARKED = "parked"
    HELD_UP = "held up"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


def list_runs(
    runner: Annotated[str | None, typer.Option("--runner", help="Those of one runner.")] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", help="Those of a thread or session.")
    ] = None,
    status: Annotated[Status | None, typer.Option("--status", help="Those of a status.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="The newest so many.", min=1)] = 100,
    as_json: AsJson = False,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """List runs, the newest first: id, status, runner, thread, when begun, when last gone on.

    The status is pending, running, waiting (for answers), parked (for a decision: see dead-letter),
    held up (by what is shown), interrupted, completed, failed or cancelled. A workflow that Dapr's
    retention policy has purged is not listed, though its records may be there. Needs the Dapr SDK
    1.19.
    """
    with overview(store_name, dapr_grpc_port) as runs:
        state = None if status is None else status.value
        wanted = {"runner": runner, "thread": thread, "status": state}
        found = (
            run
            for run in _all(runs)
            if all(value in (None, getattr(run, name)) for name, value in wanted.items())
        )
        newest = heapq.nlargest(limit, found, key=lambda run: run.created_at)
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(run) for run in newest], default=str))
        return
    width = max((len(run.run_id) for run in newest), default=0)
    for run in newest:
        colour = _COLOURS.get(run.status, "cyan")
        times = f"{run.created_at:%Y-%m-%d %H:%M:%S}  {run.last_updated_at:%Y-%m-%d %H:%M:%S}"
        about = "  ".join([run.runner, run.thread or "-", *run.waits_for])
        _console.print(
            f"{escape(run.run_id):<{width}}  [{colour}]{run.status:<11}[/{colour}]  {times}"
            f"  {escape(about)}"
        )


def _all(runs: "Overview") -> "Iterator[RunSummary]":
    from dapr_runners.engine import RunNotFoundError, run_in_thread

    for run_id in runs.ids():
        try:
            yield run_in_thread(runs.run(run_id))
        except RunNotFoundError:
            continue  # it was purged since it was listed, or is no run of a runner
