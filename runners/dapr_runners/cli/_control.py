"""``dapr-runners suspend``, ``resume`` and ``terminate``: whether a run goes on."""

from collections.abc import Callable
from typing import Any

from rich.markup import escape

from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import console
from dapr_runners.cli._sidecar import Sidecar, on_sidecar


@on_sidecar
def suspend(
    where: Sidecar, run_id: MaybeRunId = None, thread: Thread = None, runner: OfRunner = None
) -> None:
    """Suspend a run: it begins no step until it is resumed. One that runs now runs to its end."""
    _do(where, lambda runs: runs.suspend, "is suspended", run_id, thread, runner)


@on_sidecar
def resume(
    where: Sidecar, run_id: MaybeRunId = None, thread: Thread = None, runner: OfRunner = None
) -> None:
    """Let a suspended run go on. Of one that is not, say what lets it go on."""
    _do(where, lambda runs: runs.resume, "goes on", run_id, thread, runner)


@on_sidecar
def terminate(
    where: Sidecar, run_id: MaybeRunId = None, thread: Thread = None, runner: OfRunner = None
) -> None:
    """End the workflow of a run at once, whatever it does. Who waits for the run is told.

    `cancel` does the same when it can; it also works without a worker, and leaves a run alone that
    has ended but for messages that nobody takes.
    """
    _do(where, lambda runs: runs.terminate, "is terminated", run_id, thread, runner)


def _do(
    where: Sidecar,
    operation: Callable[[Any], Any],
    did: str,
    run_id: str | None,
    thread: str | None,
    runner: str | None,
) -> None:
    from dapr_runners.engine import run_in_thread

    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
        run_in_thread(operation(runs)(run))
    console().print(escape(f"{run} {did}."))
