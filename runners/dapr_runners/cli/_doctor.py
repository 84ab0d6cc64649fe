"""``dapr-runners doctor``: what is wrong with a setup, in the order in which it would fail."""

import dataclasses
import enum
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dapr_runners.cli._checks import begin_frameworks, installation, message_limit
from dapr_runners.cli._findings import Finding
from dapr_runners.cli._options import AsJson, console, print_json
from dapr_runners.cli._probe import probe_findings
from dapr_runners.cli._resources import Resources, running_resources
from dapr_runners.cli._sidecar import Sidecar, on_sidecar
from dapr_runners.cli._sidecar_checks import SidecarChecks

_console = console()
_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


class Probe(enum.Enum):
    """What Kubernetes asks of a container."""

    READY = "ready"
    LIVE = "live"


@on_sidecar
def doctor(
    where: Sidecar,
    resources_path: Annotated[
        Path | None,
        typer.Option(
            "--resources-path",
            "-d",
            help="The sidecar's component files; default: those of the one that runs here.",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option("--fix", help="Write the Resiliency that is missing there. Nothing else."),
    ] = False,
    probe: Annotated[
        Probe | None,
        typer.Option("--probe", help="Only whether the worker of this sidecar is so."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the installation, and the sidecar that a program started here would find.

    To check one that `dapr run` or `dapr-runners run` starts, run this as its program. It takes
    seconds, and ends with status 1 when something is broken.

    With --probe it is quick, for Kubernetes: ready asks for a sidecar that runs workflows and has a
    worker; live is only wrong where the sidecar is well and has no worker.
    """
    findings: list[Finding] = []
    if probe is None:
        found = _findings(where, resources_path, fix)
    else:
        found = probe_findings(where.address, needs_engine=probe is Probe.READY)
    for finding in found:
        findings.append(finding)
        if not as_json:
            _show(finding)
    well = all(finding.ok for finding in findings)
    if as_json:
        told = [dataclasses.asdict(finding) for finding in findings]
        print_json({"ok": well, "findings": told})
    raise typer.Exit(0 if well else 1)


def _findings(where: Sidecar, resources_path: Path | None, fix: bool) -> Iterator[Finding]:
    rest = begin_frameworks()
    installed = list(installation())
    yield from installed
    if resources_path is None:
        resources = running_resources(where.address.rpartition(":")[2])
    else:
        resources = Resources(resources_path, Path.cwd())
    if resources is not None:
        yield from resources.findings(where.store_name)
    if all(finding.ok for finding in installed):
        yield from message_limit()
        yield from SidecarChecks(where.address, where.store_name, resources, fix).all()
    yield from rest()


def _show(finding: Finding) -> None:
    colour = _COLOURS[finding.status]
    mark = f"[{colour}]{finding.status:<7}[/{colour}]"
    _console.print(f"{mark}  {finding.subject:<12}  {escape(finding.text)}")
    if finding.remedy:
        _console.print(f"{'':<23}-> {escape(finding.remedy)}")
