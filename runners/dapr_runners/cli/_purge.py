"""``dapr-runners purge``: delete what is recorded for runs that have ended."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from dapr_runners._statuses import RunStatus
from dapr_runners.cli._ages import age
from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import console
from dapr_runners.cli._sidecar import Sidecar, on_sidecar
from dapr_runners.cli._unreadable import Unreadable

if TYPE_CHECKING:
    from dapr_runners.engine import Overview


@on_sidecar
def purge(
    where: Sidecar,
    run_id: MaybeRunId = None,
    thread: Thread = None,
    runner: OfRunner = None,
    older: Annotated[
        str | None, typer.Option("--older", help="Instead: those begun longer ago, as 2h or 30d.")
    ] = None,
    status: Annotated[
        RunStatus | None, typer.Option("--status", help="With --older: those of a status.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask. Needed where there is no terminal.")
    ] = False,
) -> None:
    """Delete all that is recorded for a run that has ended, or for many.

    Asks before, on a terminal; where there is none, nothing is deleted without --yes. With --older,
    runs that have not ended are left alone. The checkpoints of a thread stay: they are its saver's.
    """
    from dapr_runners.engine import run_in_thread

    printer = console()
    before = age(older, "--older")
    unreadable = Unreadable()
    with where.runs() as runs:
        if before is None:
            chosen = [named(runs, run_id, thread, runner)]
        elif run_id is not None or thread is not None:
            raise typer.BadParameter("name runs with one of RUN, --thread and --older")
        else:
            chosen = _old(runs, before, runner, status, unreadable)
        what = chosen[0] if len(chosen) == 1 else f"{len(chosen)} runs"
        if chosen and not yes:
            if not sys.stdin.isatty():
                raise typer.BadParameter(
                    f"there is no terminal to ask on whether to delete all that is recorded for"
                    f" {what}: nothing is deleted. Say --yes to delete it",
                    param_hint="--yes",
                )
            typer.confirm(f"Delete all that is recorded for {what}?", abort=True)
        for run in chosen:
            run_in_thread(runs.purge(run))
            printer.print(escape(f"{run} is purged."))
    unreadable.exit()


def _old(
    runs: "Overview",
    older: float,
    runner: str | None,
    status: RunStatus | None,
    unreadable: Unreadable,
) -> list[str]:
    from dapr_runners.engine import Wanted, iterate_in_thread, list_runs

    wanted = Wanted(runner=runner, status=status, older=older)
    found = iterate_in_thread(list_runs(runs, wanted, unreadable))
    return [run.run_id for run in found if run.status.is_over]
