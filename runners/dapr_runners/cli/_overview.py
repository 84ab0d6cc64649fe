"""Opens what commands read runs with, and ends them with the text of an error of ours."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._sidecar import address_of
from dapr_runners.errors import DaprRunnersError

if TYPE_CHECKING:
    from dapr_runners.engine import Overview

Store = Annotated[str, typer.Option("--store-name", help="The runners' state store component.")]
Port = Annotated[
    int | None,
    typer.Option("--dapr-grpc-port", help="The sidecar's; default: as the variables say."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_PATIENCE = 3.0


@contextmanager
def overview(store_name: str, port: int | None) -> "Generator[Overview]":
    """The runs of a sidecar. What is wrong is said, and ends the command with status 1."""
    from dapr_runners.engine import BlockingIO, Overview, PatientIO, Worker
    from dapr_runners.state import AllowList, Codec, StateStore

    try:
        address = address_of(port)
        worker = Worker(address)
        worker.probe()
        store = StateStore(store_name, address=address)
        io = PatientIO(BlockingIO(store), address, _PATIENCE)
        try:
            yield Overview(io, worker.client, Codec(AllowList()), address)
        finally:
            store.close()
            worker.client.close()
    except DaprRunnersError as error:
        fail(error)


def fail(error: DaprRunnersError) -> None:
    """End the command with status 1, and the error's text."""
    Console(stderr=True).print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
    raise typer.Exit(1) from error
