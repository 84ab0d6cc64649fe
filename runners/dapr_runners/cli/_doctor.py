"""``dapr-runners doctor``: what is wrong with a setup, in the order in which it would fail."""

import dataclasses
import json
from collections.abc import Iterator

import typer
from rich.console import Console
from rich.markup import escape

from dapr_runners.cli._checks import begin_frameworks, installation, message_limit
from dapr_runners.cli._findings import Finding
from dapr_runners.cli._options import AsJson, Port, Store
from dapr_runners.cli._sidecar import address_of
from dapr_runners.cli._sidecar_checks import SidecarChecks

_console = Console(highlight=False, soft_wrap=True)
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    as_json: AsJson = False,
    store_name: Store = "statestore",
    dapr_grpc_port: Port = None,
) -> None:
    """Check the installation, and the sidecar that a program started here would find.

    To check one that `dapr run` or `dapr-runners run` starts, run this as its program. It takes
    seconds, and ends with status 1 when something is broken.
    """
    findings: list[Finding] = []
    for finding in _findings(store_name, dapr_grpc_port):
        findings.append(finding)
        if not as_json:
            _show(finding)
    well = all(finding.ok for finding in findings)
    if as_json:
        told = [dataclasses.asdict(finding) for finding in findings]
        typer.echo(json.dumps({"ok": well, "findings": told}))
    raise typer.Exit(0 if well else 1)


def _findings(store_name: str, port: int | None) -> Iterator[Finding]:
    rest = begin_frameworks()
    installed = list(installation())
    yield from installed
    if all(finding.ok for finding in installed):
        yield from message_limit()
        yield from SidecarChecks(address_of(port), store_name).all()
    yield from rest()


def _show(finding: Finding) -> None:
    colour = _COLOURS[finding.status]
    mark = f"[{colour}]{finding.status:<7}[/{colour}]"
    _console.print(f"{mark}  {finding.subject:<12}  {escape(finding.text)}")
    if finding.remedy:
        _console.print(f"{'':<23}-> {escape(finding.remedy)}")
