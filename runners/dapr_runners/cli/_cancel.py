"""``dapr-runners cancel``: end a run."""

from typing import Annotated

import typer

from dapr_runners.cli._options import Port, Store
from dapr_runners.cli._overview import overview


def cancel(
    run_id: Annotated[str, typer.Argument(help="The run's id, as `list` shows it.")],
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """Cancel a run. What is recorded stays recorded; one that has ended is left as it is."""
    from dapr_runners.engine import run_in_thread

    with overview(store_name, dapr_grpc_port) as runs:
        run_in_thread(runs.cancel(run_id))
