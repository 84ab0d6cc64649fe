"""What several commands take, and how they say what is wrong."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.errors import DaprRunnersError

Store = Annotated[str, typer.Option("--store-name", help="The runners' state store component.")]
Port = Annotated[
    int | None,
    typer.Option("--dapr-grpc-port", help="The sidecar's; default: as the variables say."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@contextmanager
def told_of_errors(status: int = 1) -> Generator[None]:
    """An error of ours ends the command with ``status``, and its text."""
    try:
        yield
    except DaprRunnersError as error:
        Console(stderr=True).print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        raise typer.Exit(status) from error
