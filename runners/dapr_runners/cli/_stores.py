"""What ``dapr-runners doctor`` finds out about the state store of the runners."""

import uuid
from collections.abc import Iterator
from typing import Any

from dapr_runners.cli._findings import Finding, within
from dapr_runners.errors import DaprRunnersError

_SECONDS = 10.0
_NOT_WRITABLE = ("readonly database", "read-only", "unable to open database", "permission denied")
_FULL = ("disk is full", "no space left", "OOM command not allowed")


def state_findings(address: str, component: Any, name: str) -> Iterator[Finding]:
    """Whether the store ``name`` answers, keeps, and lets the first writer win. ``component`` is
    what the sidecar's metadata tells of it, None where it does not."""
    from dapr_runners.state import StateStore, StateStoreError

    store = StateStore(name, address=address, timeout=_SECONDS)
    try:
        kept = within(_SECONDS, lambda: _first_writer_wins(store))
    except StateStoreError as error:
        yield _fault(error)
    except DaprRunnersError as error:
        yield Finding("state store", "problem", str(error), "as it says")
    except TimeoutError as error:
        yield Finding(
            "state store",
            "problem",
            f"{name} gives {error}",
            "see that the store is there, and that the sidecar's host reaches it",
        )
    else:
        if kept:
            yield Finding("state store", "ok", f"{name}: the first writer of a key wins")
        else:
            yield Finding(
                "state store",
                "problem",
                f"{name} lets a second writer win, so records could be lost",
                "use a store with ETags, such as those in components/",
            )
    finally:
        store.close()
    if component is not None:
        yield from _features(component)


def _first_writer_wins(store: Any) -> bool:
    key = f"dr/doctor/{uuid.uuid4().hex}"
    store.get(key)  # a store that is away is found out at the first question
    try:
        outcome = store.create(key, b"1"), store.create(key, b"2"), store.get(key)
    finally:
        store.delete_many([key])
    return outcome == (True, False, b"1")


def _fault(error: Any) -> Finding:
    detail = " ".join(error.detail.split())
    said = f"{error.store} answers {error.status}: {detail}"
    if any(sign in detail for sign in _NOT_WRITABLE):
        return Finding(
            "state store",
            "problem",
            f"{said}. Its file cannot be written",
            "give the sidecar's user the right to write the file and its directory, which SQLite"
            " writes too, or name another path in connectionString; then restart the sidecar",
        )
    if any(sign in detail for sign in _FULL):
        return Finding("state store", "problem", f"{said}. It is full", "make room in the store")
    return Finding(
        "state store",
        "problem",
        f"{said}. The sidecar does not reach it, or it does not work",
        "start the store, or correct its address and password in the component file and restart"
        " the sidecar; runs then go on by themselves",
    )


def _features(component: Any) -> Iterator[Finding]:
    has = set(component.capabilities)
    needed = [
        ("ETAG", "records of two workers would overwrite each other"),
        ("TRANSACTIONAL", "no workflow could be kept in it"),
    ]
    for feature, so in needed:
        if feature not in has and ("ACTOR" in has or feature == "ETAG"):
            yield Finding(
                "state store",
                "problem",
                f"{component.name} ({component.type}) has no feature {feature}: {so}",
                "use one that has it, such as those in components/",
            )
    if "ACTOR" in has and "KEYS_LIKE" not in has:
        yield Finding(
            "state store",
            "warning",
            f"{component.name} ({component.type} {component.version}) cannot list its keys, so"
            " `dapr-runners list` does not work",
            "for PostgreSQL, use version v2 of the component",
        )
