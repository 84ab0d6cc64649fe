"""``dapr-runners export``: a run as one JSON value, for a report of a bug."""

import json
from typing import Annotated

import typer

from dapr_runners.cli._insights import insight_into
from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._sidecar import Sidecar, on_sidecar


@on_sidecar
def export(
    where: Sidecar,
    run_id: MaybeRunId = None,
    thread: Thread = None,
    runner: OfRunner = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Types and sizes in place of all values.")
    ] = False,
) -> None:
    """Print all that is known of a run as one JSON value: spec, steps, effects, events, versions.

    With --redact, no value of the program's is in it: no input, result, text of an error, name of a
    thread or tenant.
    """
    from dapr_runners.effects import export_run
    from dapr_runners.engine import run_in_thread

    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
        insight = run_in_thread(insight_into(runs, run))
        told = run_in_thread(export_run(runs, insight, run, redact=redact))
    typer.echo(json.dumps(told, indent=2))
