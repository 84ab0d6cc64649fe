"""``dapr-runners cancel``: end a run."""

from dapr_runners.cli._named import MaybeRunId, OfRunner, Thread, named
from dapr_runners.cli._sidecar import Sidecar, on_sidecar


@on_sidecar
def cancel(
    where: Sidecar, run_id: MaybeRunId = None, thread: Thread = None, runner: OfRunner = None
) -> None:
    """Cancel a run. What is recorded stays recorded; one that has ended is left as it is."""
    from dapr_runners.engine import run_in_thread

    with where.runs() as runs:
        run_in_thread(runs.cancel(named(runs, run_id, thread, runner)))
