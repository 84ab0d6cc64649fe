"""``dapr-runners runs``: the runs a sidecar knows, and how far they are."""

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._sidecar import address_of
from dapr_runners.errors import DaprRunnersError

if TYPE_CHECKING:
    from dapr.ext.workflow import WorkflowState

_console = Console(highlight=False, soft_wrap=True)
_COLOURS = {"COMPLETED": "green", "RUNNING": "cyan", "PENDING": "cyan"}


def runs(
    status: Annotated[
        str | None, typer.Option("--status", help="Only those of a status, such as RUNNING.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="The newest so many.", min=1)] = 100,
    dapr_grpc_port: Annotated[
        int | None,
        typer.Option("--dapr-grpc-port", help="The sidecar's; default: as the variables say."),
    ] = None,
) -> None:
    """List runs, the newest first: id, status, when they were started, when they last went on.

    A workflow that Dapr's retention policy has purged is not listed, though its records may be
    there. Needs the Dapr SDK 1.19.
    """
    try:
        found = _states(address_of(dapr_grpc_port), status)
        newest = heapq.nlargest(limit, found, key=lambda state: state.created_at)
    except DaprRunnersError as error:
        Console(stderr=True).print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        raise typer.Exit(1) from error
    width = max((len(state.instance_id) for state in newest), default=0)
    for state in newest:
        name = state.runtime_status.name
        colour = _COLOURS.get(name, "red")
        _console.print(
            f"{escape(state.instance_id):<{width}}  [{colour}]{name:<10}[/{colour}]"
            f"  {state.created_at:%Y-%m-%d %H:%M:%S}  {state.last_updated_at:%Y-%m-%d %H:%M:%S}"
        )


def _states(address: str, status: str | None) -> "Iterator[WorkflowState]":
    import grpc
    from dapr.ext.workflow import DaprWorkflowClient

    from dapr_runners.engine import UnsupportedSdkError, Worker, sidecar_fault, without_sdk_log

    Worker(address).probe()
    host, _, port = address.rpartition(":")
    client: Any = DaprWorkflowClient(host=host, port=port)
    try:
        if not hasattr(client, "iter_workflow_instance_ids"):
            raise UnsupportedSdkError(symbol="DaprWorkflowClient.iter_workflow_instance_ids")
        for instance_id in client.iter_workflow_instance_ids():
            with without_sdk_log():
                state = client.get_workflow_state(instance_id, fetch_payloads=False)
            # It may have been purged since it was listed.
            if state is not None and status in (None, state.runtime_status.name):
                yield state
    except grpc.RpcError as error:
        raise sidecar_fault(address, error) from None
    finally:
        client.close()
