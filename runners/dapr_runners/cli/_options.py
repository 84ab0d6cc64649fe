"""What several commands take, and how they print."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OfOneRunner = Annotated[str | None, typer.Option("--runner", help="Those of one runner.")]
OfOneThread = Annotated[str | None, typer.Option("--thread", help="Those of a thread or session.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Go on until the run ends, or Ctrl-C.")
]


def console() -> Console:
    """What is printed for people."""
    return Console(highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """``value`` on one line, as JSON."""
    typer.echo(json.dumps(value, default=str))
