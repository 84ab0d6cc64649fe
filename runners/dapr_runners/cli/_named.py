"""How commands are told which run they are about: by its id, or as the newest of a thread."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dapr_runners.engine import Overview

MaybeRunId = Annotated[
    str | None, typer.Argument(help="The run's id, as `list` shows it.", metavar="[RUN]")
]
Thread = Annotated[
    str | None, typer.Option("--thread", help="Instead: the newest run of a thread or session.")
]
OfRunner = Annotated[
    str | None, typer.Option("--runner", help="Whose thread, if several runners have it.")
]


def named(runs: "Overview", run_id: str | None, thread: str | None, runner: str | None) -> str:
    """The id of the run that a command is about. One of ``run_id`` and ``thread`` must be given."""
    from dapr_runners.engine import newest_of, run_in_thread

    if run_id is not None and thread is None:
        return runs.named(run_id)
    if run_id is None and thread is not None:
        return run_in_thread(newest_of(runs, thread, runner))
    raise typer.BadParameter("name the run with one of RUN and --thread")
