"""``dapr-runners list``: the runs a sidecar knows, and how far they are."""

import dataclasses
import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dapr_runners._statuses import RunStatus
from dapr_runners.cli._options import AsJson, console, print_json
from dapr_runners.cli._sidecar import Sidecar, on_sidecar

if TYPE_CHECKING:
    from dapr_runners.engine import Overview, RunSummary

_console = console()
_COLOURS = {"completed": "green", "failed": "red", "parked": "red", "held up": "red"}


@on_sidecar
def list_runs(
    where: Sidecar,
    runner: Annotated[str | None, typer.Option("--runner", help="Those of one runner.")] = None,
    thread: Annotated[
        str | None, typer.Option("--thread", help="Those of a thread or session.")
    ] = None,
    status: Annotated[RunStatus | None, typer.Option("--status", help="Those of a status.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="The newest so many.", min=1)] = 100,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first: id, status, runner, thread, when begun, when last gone on.

    The status is pending, running, waiting (for answers), parked (for a decision: see dead-letter),
    held up (by what is shown), interrupted, completed, failed or cancelled. A workflow that Dapr's
    retention policy has purged is not listed, though its records may be there. Needs the Dapr SDK
    1.19.
    """
    with where.runs() as runs:
        state = None if status is None else status.value
        wanted = {"runner": runner, "thread": thread, "status": state}
        found = (
            run
            for run in _all(runs)
            if all(value in (None, getattr(run, name)) for name, value in wanted.items())
        )
        newest = heapq.nlargest(limit, found, key=lambda run: run.created_at)
    if as_json:
        print_json([dataclasses.asdict(run) for run in newest])
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
