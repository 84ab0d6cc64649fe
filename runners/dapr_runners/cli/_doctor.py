"""``dapr-runners doctor``: what is wrong with a setup, in the order in which it would fail."""

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._checks import Finding, frameworks, installation, sidecar
from dapr_runners.cli._options import Port, Store
from dapr_runners.cli._sidecar import address_of

_console = Console(highlight=False, soft_wrap=True)


def doctor(
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """Check the installation, and the sidecar that a program started here would find.

    To check one that `dapr run` or `dapr-runners run` starts, run this as its program.
    """
    findings = [*installation(), *frameworks()]
    if all(finding.ok for finding in findings):
        findings += sidecar(address_of(dapr_grpc_port), store_name)
    for finding in findings:
        _show(finding)
    raise typer.Exit(0 if all(finding.ok for finding in findings) else 1)


def _show(finding: Finding) -> None:
    mark = "[green]ok     [/green]" if finding.ok else "[red]problem[/red]"
    _console.print(f"{mark}  {finding.subject:<12}  {escape(finding.text)}")
