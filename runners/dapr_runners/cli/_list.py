"""``dapr-runners list``: the runs a sidecar knows, and how far they are."""

import dataclasses
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dapr_runners._statuses import RunStatus
from dapr_runners._times import shown, with_iso
from dapr_runners.cli._ages import age
from dapr_runners.cli._options import AsJson, OfOneRunner, OfOneThread, console, print_json
from dapr_runners.cli._sidecar import Sidecar, on_sidecar
from dapr_runners.cli._unreadable import Unreadable

if TYPE_CHECKING:
    from dapr_runners.engine import RunSummary

_console = console()
_COLOURS = {"completed": "green", "failed": "red", "parked": "red", "held up": "red"}


@on_sidecar
def list_runs(
    where: Sidecar,
    runner: OfOneRunner = None,
    thread: OfOneThread = None,
    status: Annotated[RunStatus | None, typer.Option("--status", help="Those of a status.")] = None,
    older: Annotated[
        str | None, typer.Option("--older", help="Those begun longer ago, as 90s, 2h or 3d.")
    ] = None,
    newer: Annotated[
        str | None, typer.Option("--newer", help="Those begun since, as 90s, 2h or 3d.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Only so many.", min=1)] = 100,
    page: Annotated[int, typer.Option("--page", help="The n-th so many.", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """List runs, the newest first: id, status, runner, thread, when begun, when last gone on.

    The status is pending, running, suspended, waiting (for answers), parked (for a decision: see
    dead-letter), held up (by what is shown), interrupted, completed, failed or cancelled. Times are
    in UTC; ages count from when a run was begun. A workflow that Dapr's retention policy has purged
    is not listed, though its records may be there. Runs that cannot be read are named on stderr,
    and the exit code is 1 then. Needs the Dapr SDK 1.19.
    """
    from dapr_runners.engine import Wanted, iterate_in_thread
    from dapr_runners.engine import list_runs as listed

    ages = age(older, "--older"), age(newer, "--newer")
    unreadable = Unreadable()
    with where.runs() as runs:
        wanted = Wanted(runner, thread, status, *ages)
        found = iterate_in_thread(listed(runs, wanted, unreadable))
        newest = list(islice(found, limit * (page - 1), limit * page))
    if as_json:
        print_json([with_iso(dataclasses.asdict(run)) for run in newest])
    else:
        _print(newest)
    unreadable.exit()


def _print(newest: "list[RunSummary]") -> None:
    width = max((len(run.run_id) for run in newest), default=0)
    for run in newest:
        colour = _COLOURS.get(run.status, "cyan")
        times = f"{shown(run.created_at):<20}  {shown(run.last_updated_at):<20}"
        about = "  ".join([run.runner, run.thread or "-", *run.waits_for])
        _console.print(
            f"{escape(run.run_id):<{width}}  [{colour}]{run.status:<11}[/{colour}]  {times}"
            f"  {escape(about)}"
        )
