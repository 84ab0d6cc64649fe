"""What a command that is about many could not read, while it did the rest."""

from dataclasses import dataclass

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._exits import ExitCode


@dataclass(slots=True)
class Unreadable:
    """Names what could not be read on stderr, each as a ``what``. The command ends with
    :meth:`exit`."""

    what: str = "run"
    names: int = 0

    def __call__(self, name: str, error: Exception) -> None:
        self.names += 1
        text = f"{self.what} {name} cannot be read: {error}"
        Console(stderr=True, highlight=False).print(f"[red]{escape(text)}[/red]", soft_wrap=True)

    def exit(self) -> None:
        """End the command with the exit code for it, if there was any."""
        if self.names:
            raise typer.Exit(ExitCode.FAILED)
