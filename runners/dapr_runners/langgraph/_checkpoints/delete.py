"""Deleting threads and runs, and pruning."""

from collections.abc import Collection, Sequence

from dapr_runners.langgraph._checkpoints.context import Context
from dapr_runners.langgraph._checkpoints.errors import UnknownPruneStrategyError
from dapr_runners.langgraph._checkpoints.flow import Flow, attempts, delete_many, put_many
from dapr_runners.langgraph._checkpoints.keys import Scope, page_key
from dapr_runners.langgraph._checkpoints.listing import scopes_of
from dapr_runners.langgraph._checkpoints.log import (
    EMPTY,
    Entry,
    Head,
    extend,
    read_log,
    write_head,
)
from dapr_runners.langgraph._checkpoints.remove import clear, remove
from dapr_runners.langgraph._checkpoints.threads import remove_thread, thread_mark
from dapr_runners.langgraph._checkpoints.tuples import fetch
from dapr_runners.state import CorruptRecordError, StoredValue


def delete_thread(context: Context, thread: str) -> Flow[None]:
    """Delete all checkpoints of a thread."""
    # Read first: if the thread comes back while it is being deleted, its mark is another one.
    mark = yield from thread_mark(context.keys, thread)
    key = context.keys.thread(thread)
    for pause in attempts(key):
        found, head, entries = yield from read_log(key)
        if found is None and mark is None:
            return
        for namespace in {entry[0]: None for entry in entries}:
            yield from _clear_listed_by_runs(context, context.keys.scope(thread, namespace))
        if (yield from write_head(key, EMPTY, found)):
            yield from delete_many([page_key(key, page) for page in head.pages])
            break
        yield from pause
    if mark:
        yield from remove_thread(context, thread, mark)


def _clear_listed_by_runs(context: Context, scope: Scope) -> Flow[None]:
    """Remove all checkpoints of a namespace, and the namespace from the lists of their runs."""
    runs: list[tuple[str, StoredValue, Head, list[Entry]]] = []
    for run_id in sorted({entry[4] for entry in (yield from _entries(scope)) if entry[4]}):
        key = context.keys.run(run_id)
        found, head, entries = yield from read_log(key)
        if found:
            runs.append((key, found, head, entries))
    yield from clear(context, scope)
    for key, found, head, entries in runs:
        others = [entry for entry in entries if entry[:2] != [scope.thread, scope.namespace]]
        rest, pages = extend(key, EMPTY, others)
        yield from put_many(pages)
        # If the list has changed since the namespace was full, a run may have come back to it.
        if (yield from write_head(key, rest, found)):
            pages = {page_key(key, page): b"" for page in head.pages}
        yield from delete_many(list(pages))


def _entries(scope: Scope) -> Flow[list[Entry]]:
    try:
        _, _, entries = yield from read_log(scope.index)
    except CorruptRecordError:
        return []  # Deleting a thread has to remain possible.
    return entries


def delete_for_runs(context: Context, run_ids: Sequence[str]) -> Flow[None]:
    """Delete all checkpoints that have one of ``run_ids`` in their metadata."""
    for run_id in run_ids:
        key = context.keys.run(str(run_id))
        for pause in attempts(key):
            found, head, entries = yield from read_log(key)
            if not entries:
                break
            for thread, namespace in {(entry[0], entry[1]): None for entry in entries}:
                scope = context.keys.scope(thread, namespace)
                yield from remove(context, scope, _Others(str(run_id)), touch=True)
            if (yield from write_head(key, EMPTY, found)):
                yield from delete_many([page_key(key, page) for page in head.pages])
                break
            yield from pause


def prune(context: Context, threads: Sequence[str], strategy: str) -> Flow[None]:
    """Delete all checkpoints of ``threads``, or all but the latest of each namespace.

    Raises:
        UnknownPruneStrategyError: ``strategy`` is neither "keep_latest" nor "delete".
    """
    if strategy not in ("keep_latest", "delete"):
        raise UnknownPruneStrategyError(strategy=strategy)
    for thread in threads:
        if strategy == "delete":
            yield from delete_thread(context, str(thread))
            continue
        for scope in (yield from scopes_of(context, [str(thread)])):
            yield from remove(context, scope, _Latest(context, scope))


class _Others:
    """Keeps the checkpoints of other runs."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id

    def __call__(self, entries: dict[str, Entry]) -> Flow[Collection[str]]:
        yield from ()
        return {name for name, entry in entries.items() if entry[4] != self._run_id}


class _Latest:
    """Keeps the latest checkpoint, and those ancestors without which its delta channels could not
    be rebuilt."""

    def __init__(self, context: Context, scope: Scope) -> None:
        self._context = context
        self._scope = scope

    def __call__(self, entries: dict[str, Entry]) -> Flow[Collection[str]]:
        kept: set[str] = set()
        at: str | None = max(entries, default=None)
        missing: set[str] | None = None
        while at in entries and at not in kept:
            kept.add(at)
            for each in (yield from fetch([(self._scope, at)])):
                if missing is None:
                    metadata = each.record.load_metadata(self._context.serde)
                    missing = set(metadata.get("counters_since_delta_snapshot") or ())
                missing -= each.record.forms.keys()
            if not missing:
                break
            at = entries[at][1]
        return kept
