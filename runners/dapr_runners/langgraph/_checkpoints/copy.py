"""Copying a thread: the documents as they are, under the keys of the other thread."""

from dapr_runners.langgraph._checkpoints.context import Context
from dapr_runners.langgraph._checkpoints.flow import (
    Flow,
    attempts,
    get_many,
    put_many,
    read,
    write_if_unchanged,
)
from dapr_runners.langgraph._checkpoints.keys import Scope
from dapr_runners.langgraph._checkpoints.listing import scopes_of
from dapr_runners.langgraph._checkpoints.log import Entry, decode_head, read_log, removed_since
from dapr_runners.langgraph._checkpoints.put import add_entries
from dapr_runners.langgraph._checkpoints.record import decode
from dapr_runners.langgraph._checkpoints.values import StoredForm, part_keys
from dapr_runners.langgraph._checkpoints.writes import documents_of_writes
from dapr_runners.state import CorruptRecordError

_BATCH = 50


def copy_thread(context: Context, source: str, target: str) -> Flow[None]:
    """Copy all checkpoints of a thread, with their writes, into another one."""
    if source == target:
        return
    for scope in (yield from scopes_of(context, [source])):
        other = context.keys.scope(target, scope.namespace)
        entries = yield from _copy_all(scope, other)
        if entries:
            yield from context.gates.guard(other.index, _add(context, other, entries))


def _copy_all(scope: Scope, other: Scope) -> Flow[list[Entry]]:
    """Copy the documents of all checkpoints, and return their entries in the index."""
    for pause in attempts(scope.index):
        _, head, entries = yield from read_log(scope.index)
        current = list({entry[0]: entry for entry in entries}.values())
        try:
            for start in range(0, len(current), _BATCH):
                ids = [entry[0] for entry in current[start : start + _BATCH]]
                yield from _copy_documents(scope, other, ids)
        except CorruptRecordError:
            if not (yield from removed_since(scope.index, head)):
                raise
        else:
            if not (yield from removed_since(scope.index, head)):
                return current
        yield from pause
    return []


def _copy_documents(scope: Scope, other: Scope, checkpoint_ids: list[str]) -> Flow[None]:
    """Copy the documents of some checkpoints.

    Raises:
        CorruptRecordError: a document is missing or damaged.
    """
    keys = [scope.checkpoint(checkpoint_id) for checkpoint_id in checkpoint_ids]
    records = yield from get_many(keys)
    writes = yield from get_many([scope.writes(checkpoint_id) for checkpoint_id in checkpoint_ids])
    forms: list[StoredForm] = []
    further: list[str] = []
    for key, document in records.items():
        forms += decode(key, document).forms.values()
    for key, document in writes.items():
        pages, written = yield from documents_of_writes(key, document)
        further += pages
        forms += written
    further += dict.fromkeys(part for form in forms for part in part_keys(scope, form))
    documents = records | (yield from get_many(further))
    for key in (*keys, *further):
        if key not in documents:
            raise CorruptRecordError(key=key, reason="it is missing")
    yield from put_many({_moved(key, scope, other): documents[key] for key in documents})
    for key, document in writes.items():
        # Created rather than put: on Redis only what was created refuses to be created again.
        yield from write_if_unchanged(_moved(key, scope, other), document, None)


def _moved(key: str, scope: Scope, other: Scope) -> str:
    return other.index + key.removeprefix(scope.index)


def _add(context: Context, scope: Scope, entries: list[Entry]) -> Flow[None]:
    for pause in attempts(scope.index):
        found = yield from read(scope.index)
        head = decode_head(scope.index, found)
        if (yield from add_entries(context, scope, entries, head, found)):
            return
        yield from pause
