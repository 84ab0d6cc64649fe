"""``dapr-runners retry``: a run that has ended, from where it failed or from a step."""

from typing import Annotated

import typer
from rich.markup import escape

from dapr_runners.cli._insights import insight_into
from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import console
from dapr_runners.cli._sidecar import Sidecar, on_sidecar


@on_sidecar
def retry(
    where: Sidecar,
    run_id: MaybeRunId = None,
    thread: Thread = None,
    runner: OfRunner = None,
    step: Annotated[
        str | None, typer.Option("--from", help="A step's name or id (`show --json`).")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="With --from: effects that have happened may again.")
    ] = False,
) -> None:
    """Let a run go on that has failed or was cancelled; or do a step of a run again.

    Without --from, the same run goes on: what is recorded is not done again, and its effects count.
    With --from, a new turn of the thread (of a graph with a checkpointer) goes on from the state
    before the step; steps that were planned with it are done again as well.
    """
    from dapr_runners.engine import retry as go_on
    from dapr_runners.engine import run_in_thread

    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
        if step is None:
            run_in_thread(go_on(runs, run))
            said = f"{run} goes on."
        else:
            insight = run_in_thread(insight_into(runs, run))
            new = run_in_thread(insight.retry_from(runs, run, step, again))
            said = f"{new} goes on from {step} of {run}."
    console().print(escape(said))
