"""What ``dapr-runners doctor`` looks at. Each check imports what it needs: what is broken may be
the import itself."""

import platform
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from dapr_runners import DaprRunnersError, __version__

_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found out, and whether that is as it should be."""

    subject: str
    ok: bool
    text: str


def installation() -> Iterator[Finding]:
    """Versions, and whether the Dapr SDK is whole."""
    yield Finding("dapr-runners", True, f"{__version__} on Python {platform.python_version()}")
    yield _sdk(_version("dapr"), _version("dapr-ext-workflow"))


def _sdk(dapr: str | None, extension: str | None) -> Finding:
    if dapr is None:
        return Finding("dapr SDK", False, "not installed: pip install 'dapr[workflow]>=1.19'")
    if merged(dapr) and extension is not None:
        return Finding(
            "dapr SDK",
            False,
            f"dapr {dapr} has the workflow package in it, and dapr-ext-workflow {extension} beside"
            " it overwrites that. Remove it and restore the files it shares: pip uninstall"
            " dapr-ext-workflow, then pip install --force-reinstall --no-deps dapr",
        )
    try:
        # Where files are missing it can be an empty namespace, which imports well.
        _ = import_module("dapr.ext.workflow").DaprWorkflowClient
    except Exception as error:
        remedy = (
            "pip install --force-reinstall --no-deps dapr"
            if merged(dapr)
            else f"pip install dapr-ext-workflow=={dapr}"
        )
        return Finding(
            "dapr SDK",
            False,
            f"dapr {dapr}: dapr.ext.workflow cannot be imported ({error!r}). Repair it: {remedy}",
        )
    shown = f"dapr {dapr}" + (f", dapr-ext-workflow {extension}" if extension else "")
    return Finding("dapr SDK", True, shown)


def merged(dapr: str) -> bool:
    """Whether this version of the ``dapr`` distribution has the workflow package in it."""
    major, minor = (int("".join(filter(str.isdigit, part)) or 0) for part in dapr.split(".")[:2])
    return (major, minor) >= (1, 19)


def frameworks() -> Iterator[Finding]:
    """Whether the runners of the installed frameworks can be imported, which refuse versions that
    they do not support."""
    for name in ("langgraph", "crewai"):
        found = _version(name)
        if found is None:
            yield Finding(name, True, f"not installed (pip install 'dapr-runners[{name}]')")
            continue
        try:
            import_module(f"dapr_runners.{name}")
        except Exception as error:
            yield Finding(name, False, f"{found} is not supported: {error}")
        else:
            yield Finding(name, True, f"{found} is supported")


def sidecar(address: str, store_name: str) -> Iterator[Finding]:
    """Whether the sidecar is there, lets us in, runs workflows and keeps state."""
    try:
        yield _workflows(address)
        yield _components(address)
        yield _state(address, store_name)
    except DaprRunnersError as error:
        yield Finding("sidecar", False, str(error))


def _workflows(address: str) -> Finding:
    from dapr_runners.engine import Worker

    Worker(address).probe()
    return Finding("workflows", True, f"the sidecar at {address} runs them")


def _components(address: str) -> Finding:
    import grpc

    from dapr_runners.engine import sidecar_metadata

    try:
        answer = sidecar_metadata(address)
    except grpc.RpcError as error:
        return Finding("sidecar", True, f"it does not tell about itself ({error.code()})")
    names = ", ".join(f"{one.name} ({one.type})" for one in answer.registered_components)
    runtime = answer.runtime_version or "unknown"
    text = f"app id {answer.id}, runtime {runtime}, components: {names or 'none'}"
    if runtime.startswith("1.18.") and not answer.resiliencies:
        text += " (no Resiliency: some fan-outs will pause, see components/resiliency.yaml)"
    return Finding("sidecar", True, text)


def _state(address: str, store_name: str) -> Finding:
    from dapr_runners.state import StateStore

    store = StateStore(store_name, address=address, timeout=_ANSWER_SECONDS)
    key = f"dr/doctor/{uuid.uuid4().hex}"
    try:
        first, second = store.create(key, b"1"), store.create(key, b"2")
        kept = store.get(key)
        store.delete_many([key])
    finally:
        store.close()
    if (first, second, kept) != (True, False, b"1"):
        return Finding(
            "state store",
            False,
            f"{store_name} lets a second writer win, so records could be lost. Use a store with"
            " ETags, such as those in components/",
        )
    return Finding("state store", True, f"{store_name}: the first writer of a key wins")


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
