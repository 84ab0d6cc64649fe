"""What the exit codes of the commands mean. docs/cli.md has the table."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import IntEnum

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.errors import DaprRunnersError, ErrorCategory


class ExitCode(IntEnum):
    """What became of a command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NO_SIDECAR = 4
    REFUSED = 5
    NO_WORKER = 6
    INTERRUPTED = 130


_CODES: Mapping[ErrorCategory, ExitCode] = {
    "failed": ExitCode.FAILED,
    "usage": ExitCode.USAGE,
    "not found": ExitCode.NOT_FOUND,
    "no sidecar": ExitCode.NO_SIDECAR,
    "refused": ExitCode.REFUSED,
    "no worker": ExitCode.NO_WORKER,
}


@contextmanager
def told_of_errors() -> Generator[None]:
    """An error of ours ends the command with its text and the exit code of its kind; Ctrl-C ends
    it as it does a shell's own."""
    try:
        yield
    except DaprRunnersError as error:
        Console(stderr=True).print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        raise typer.Exit(_CODES[error.category]) from error
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
