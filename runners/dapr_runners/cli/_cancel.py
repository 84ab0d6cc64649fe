"""``dapr-runners cancel``: end a run."""

from rich.markup import escape

from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._options import console
from dapr_runners.cli._sidecar import Sidecar, on_sidecar


@on_sidecar
def cancel(
    where: Sidecar, run_id: MaybeRunId = None, thread: Thread = None, runner: OfRunner = None
) -> None:
    """Cancel a run. What is recorded stays recorded; one that has ended is left as it is."""
    from dapr_runners.engine import run_in_thread

    with where.runs() as runs:
        run = named(runs, run_id, thread, runner)
        was_active = run_in_thread(runs.cancel(run))
    done = "is cancelled" if was_active else "had ended: it is left as it is"
    console().print(f"{escape(run)} {done}.")
