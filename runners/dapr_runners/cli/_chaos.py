"""``dapr-runners chaos``: a program is killed at every point of its runs."""

import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import track

from dapr_runners.errors import DaprRunnersError
from dapr_runners.testing import FAULTS

if TYPE_CHECKING:
    from dapr_runners.testing import Crash

_NARROW = 120
"""Columns of a table that no terminal shows."""


def chaos(
    command: Annotated[
        list[str], typer.Argument(help="The program, after `--`.", metavar="-- APP")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Only points of this step; again for more."),
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            help="Instead of killing the program, do this while a step is done and not recorded;"
            f" again for more, or `all`. One of {', '.join(FAULTS)}.",
        ),
    ] = None,
    parallel: Annotated[int, typer.Option("--parallel", "-n", help="Crashes at once.", min=1)] = 2,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds that the program may take.")
    ] = 60.0,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            help="A shell command to run before each crash, which puts back what the program left"
            " elsewhere than in the state store.",
        ),
    ] = None,
    resources_path: Annotated[
        Path | None,
        typer.Option("--resources-path", "--components-path", "-d", help="Component files."),
    ] = None,
) -> None:
    """Kill a program with SIGKILL at every point of its runs, and start it again.

    It is started as it is, each time beside an embedded sidecar of its own: first undisturbed, then
    killed before each step, in its middle, when it is done, when it is recorded, and when the
    workflow is told. Started again, it has to end with the same results, and nothing recorded may
    run again. The exit status is 1 where that is not so.
    """
    from dapr_runners.testing import CrashTest, Program
    from dapr_runners.testing._report import summary, table

    faults = list(FAULTS) if fault == ["all"] else (fault or [])
    if unknown := sorted(set(faults) - set(FAULTS)):
        raise typer.BadParameter(f"no fault is named {unknown[0]!r}", param_hint="--fault")
    console = Console(width=None if sys.stdout.isatty() else _NARROW, highlight=False)
    # Not to leave programs behind: as Ctrl-C does, it lets the crashes under way come to their end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    program = Program(command, before=before, timeout=timeout, resources_path=resources_path)
    test = CrashTest(program)
    crashes: list[Crash] = []
    is_whole = False
    try:
        points = [one for one in test.points() if only is None or one.step in only]
        if faults:
            points = [one for one in points if one.phase == "done"]
            found = test.faults(points, faults, parallel)
            total = len(points) * len(faults)
        else:
            found, total = test.crashes(points, parallel), len(points)
        for crash in _shown(found, total):
            crashes.append(crash)
        is_whole = True
    except KeyboardInterrupt:
        pass  # what is found until now is shown
    except DaprRunnersError as error:
        Console(stderr=True).print(f"[red]{escape(str(error))}[/red]", soft_wrap=True)
        raise typer.Exit(2) from error
    console.print(table(program.text, crashes))
    for crash in crashes:
        if crash.problems:
            console.print(f"\nThe last output after the crash when {crash.point}:", style="bold")
            console.print(crash.output, markup=False)
    console.print(summary(crashes))
    if not is_whole:
        console.print("Interrupted: there are more points.")
        raise typer.Exit(130)
    raise typer.Exit(int(any(crash.problems for crash in crashes)))


def _shown(crashes: "Iterable[Crash]", total: int) -> "Iterator[Crash]":
    return iter(track(crashes, "Crashes", total, console=Console(stderr=True), transient=True))
