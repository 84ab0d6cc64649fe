"""``dapr-runners doctor``: what is wrong with a setup, in the order in which it would fail."""

import dataclasses
from collections.abc import Iterator

import typer
from rich.markup import escape

from dapr_runners.cli._checks import begin_frameworks, installation, message_limit
from dapr_runners.cli._findings import Finding
from dapr_runners.cli._options import AsJson, console, print_json
from dapr_runners.cli._sidecar import Sidecar, on_sidecar
from dapr_runners.cli._sidecar_checks import SidecarChecks

_console = console()
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@on_sidecar
def doctor(where: Sidecar, as_json: AsJson = False) -> None:
    """Check the installation, and the sidecar that a program started here would find.

    To check one that `dapr run` or `dapr-runners run` starts, run this as its program. It takes
    seconds, and ends with status 1 when something is broken.
    """
    findings: list[Finding] = []
    for finding in _findings(where):
        findings.append(finding)
        if not as_json:
            _show(finding)
    well = all(finding.ok for finding in findings)
    if as_json:
        told = [dataclasses.asdict(finding) for finding in findings]
        print_json({"ok": well, "findings": told})
    raise typer.Exit(0 if well else 1)


def _findings(where: Sidecar) -> Iterator[Finding]:
    rest = begin_frameworks()
    installed = list(installation())
    yield from installed
    if all(finding.ok for finding in installed):
        yield from message_limit()
        yield from SidecarChecks(where.address, where.store_name).all()
    yield from rest()


def _show(finding: Finding) -> None:
    colour = _COLOURS[finding.status]
    mark = f"[{colour}]{finding.status:<7}[/{colour}]"
    _console.print(f"{mark}  {finding.subject:<12}  {escape(finding.text)}")
    if finding.remedy:
        _console.print(f"{'':<23}-> {escape(finding.remedy)}")
