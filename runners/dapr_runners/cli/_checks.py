"""What ``dapr-runners doctor`` looks at in an installation. Each check imports what it needs: what
is broken may be the import itself."""

import json
import platform
import re
import subprocess  # nosec B404 # for this Python, see below
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from dapr_runners import __version__
from dapr_runners.cli._findings import Finding

SUPPORTED = (1, 18), (1, 19)
"""Oldest and newest minor version of the Dapr SDK and of daprd that the runners are made for."""

_IMPORT_SECONDS = 60.0


def installation() -> Iterator[Finding]:
    """Versions, and whether the Dapr SDK is whole."""
    yield Finding("dapr-runners", "ok", f"{__version__} on Python {platform.python_version()}")
    yield _sdk(_version("dapr"), _version("dapr-ext-workflow"))


def _sdk(dapr: str | None, extension: str | None) -> Finding:
    if dapr is None:
        return Finding(
            "dapr SDK", "problem", "not installed", "pip install 'dapr[workflow]>=1.19,<1.20'"
        )
    if minor_of(dapr) < SUPPORTED[0]:
        return Finding(
            "dapr SDK",
            "problem",
            f"dapr {dapr} is not supported: the runners need 1.18 or 1.19",
            "pip install 'dapr[workflow]>=1.19,<1.20'",
        )
    if merged(dapr) and extension is not None:
        return Finding(
            "dapr SDK",
            "problem",
            f"dapr {dapr} has the workflow package in it, and dapr-ext-workflow {extension} beside"
            " it overwrites that",
            "remove it and restore the files it shares: pip uninstall dapr-ext-workflow, then"
            " pip install --force-reinstall --no-deps dapr",
        )
    try:
        # Where files are missing it can be an empty namespace, which imports well.
        _ = import_module("dapr.ext.workflow").DaprWorkflowClient
    except Exception as error:
        return Finding(
            "dapr SDK",
            "problem",
            f"dapr {dapr}: dapr.ext.workflow cannot be imported ({error!r})",
            "pip install --force-reinstall --no-deps dapr"
            if merged(dapr)
            else f"pip install dapr-ext-workflow=={dapr}",
        )
    shown = f"dapr {dapr}" + (f", dapr-ext-workflow {extension}" if extension else "")
    if minor_of(dapr) > SUPPORTED[1]:
        return Finding(
            "dapr SDK",
            "warning",
            f"{shown} is newer than what the runners were tested with",
            "if something is amiss: pip install 'dapr[workflow]>=1.19,<1.20'",
        )
    return Finding("dapr SDK", "ok", shown)


def minor_of(text: str) -> tuple[int, int]:
    """Major and minor number of a version; zeros where it has none."""
    match = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def merged(dapr: str) -> bool:
    """Whether this version of the ``dapr`` distribution has the workflow package in it."""
    return minor_of(dapr) >= (1, 19)


def begin_frameworks() -> Callable[[], Iterator[Finding]]:
    """Whether the runners of the installed frameworks can be imported, which refuse versions that
    they do not support. Begins at once, in processes of their own as it takes seconds; the findings
    come from what is returned."""
    begun = [(name, _version(name)) for name in ("langgraph", "crewai")]
    imports = {name: _begin_import(f"dapr_runners.{name}") for name, found in begun if found}

    def findings() -> Iterator[Finding]:
        for name, found in begun:
            if found is None:
                hint = f"not installed (pip install 'dapr-runners[{name}]')"
                yield Finding(name, "ok", hint)
            elif (error := _error_of(imports[name])) is None:
                yield Finding(name, "ok", f"{found} is supported")
            else:
                remedy = f"pip install 'dapr-runners[{name}]' gets a version that is"
                yield Finding(name, "problem", f"{found} is not supported: {error}", remedy)

    return findings


_IMPORT = """
import json, sys
from importlib import import_module
try:
    import_module(sys.argv[1])
    error = None
except Exception as raised:
    error = str(raised)
print("\\n" + json.dumps(error))
"""


def _begin_import(module: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # nosec B603 # this Python; modules named in this file
        [sys.executable, "-c", _IMPORT, module],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _error_of(process: "subprocess.Popen[str]") -> str | None:
    """What the import raised, in words; None when it went well."""
    try:
        told, complaint = process.communicate(timeout=_IMPORT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"its import has not ended within {_IMPORT_SECONDS:g} s"
    try:
        return json.loads(told.splitlines()[-1])
    except (IndexError, ValueError):
        return complaint.strip() or f"its import ended the process with {process.returncode}"


def message_limit() -> Iterator[Finding]:
    """How large a message from the sidecar this process takes."""
    from dapr_runners.engine import receive_limit

    limit = receive_limit()
    if limit is not None and limit < SIDECAR_LIMIT:
        yield Finding(
            "messages",
            "problem",
            f"this process takes messages of up to {limit} bytes, and a sidecar sends up to"
            f" {SIDECAR_LIMIT}: the first larger one would stop all work",
            "unset DAPR_GRPC_MAX_INBOUND_MESSAGE_SIZE_BYTES, or set it to that at least",
        )


SIDECAR_LIMIT = 4 * 1024 * 1024
"""daprd's --max-body-size, unless it is given another one."""


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
