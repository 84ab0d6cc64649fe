"""Putting a checkpoint: its documents first, then the index entry that makes it visible.

Killed between the two, the thread is as it was, and putting the checkpoint again completes it.
"""

from dataclasses import replace

from dapr_runners.langgraph._checkpoints.context import Context, Stored
from dapr_runners.langgraph._checkpoints.flow import (
    Flow,
    attempts,
    delete_many,
    put_many,
    put_many_and_read,
    read,
)
from dapr_runners.langgraph._checkpoints.keys import Scope
from dapr_runners.langgraph._checkpoints.log import (
    Entry,
    Head,
    decode_head,
    extend,
    new_head,
    read_entries,
    write_head,
)
from dapr_runners.langgraph._checkpoints.record import NewCheckpoint, encode
from dapr_runners.langgraph._checkpoints.threads import add_thread
from dapr_runners.state import StoredValue


def put_checkpoint(context: Context, scope: Scope, new: NewCheckpoint) -> Flow[None]:
    """Record a checkpoint. Recording it again changes nothing.

    Raises:
        UnstorableValueError: a value or the metadata cannot be serialized.
        CheckpointContentionError: other writers of the thread were faster each time.
    """
    return context.gates.guard(scope.index, _put(context, scope, new))


def _put(context: Context, scope: Scope, new: NewCheckpoint) -> Flow[None]:
    parent = context.shared.stored.get(scope.index)
    encoded = encode(context.serde, scope, new, parent)
    found = yield from put_many_and_read(encoded.documents, scope.index)
    for pause in attempts(scope.index):
        head = decode_head(scope.index, found)
        if parent and (found is None or head.sweeps != parent.sweeps):
            # What the checkpoint refers to may have been removed with the parent.
            parent = None
            encoded = encode(context.serde, scope, new, None)
            yield from put_many(encoded.documents)
        written = yield from add_entries(context, scope, [new.entry()], head, found)
        if written:
            stored = Stored(new.id, written.sweeps, encoded.large)
            context.shared.stored.put(scope.index, stored)
            return
        yield from pause
        found = yield from read(scope.index)


def add_entries(
    context: Context,
    scope: Scope,
    entries: list[Entry],
    head: Head,
    found: StoredValue | None,
) -> Flow[Head | None]:
    """Add checkpoints to the index, in the place of those with the same ids.

    Returns:
        The index, or None if somebody else has changed it since it was ``found``.
    """
    entries = yield from _missing(scope, head, entries)
    if not entries and head.listed:
        return head
    if found is None:
        head = new_head()
    if not head.listed:
        yield from _list_namespace(context, scope)
    yield from _list_runs(context, scope, head, entries)
    names = {entry[0] for entry in entries}
    others = tuple(entry for entry in head.entries if entry[0] not in names)
    grown, pages = extend(scope.index, replace(head, listed=True, entries=others), entries)
    yield from put_many(pages)
    if (yield from write_head(scope.index, grown, found)):
        return grown
    yield from delete_many(list(pages))
    return None


def _missing(scope: Scope, head: Head, entries: list[Entry]) -> Flow[list[Entry]]:
    """Those of ``entries`` that the index does not have as they are."""
    present = list(head.entries)
    if any(entry[0] <= head.floor for entry in entries):
        present = (yield from read_entries(scope.index, head)) or present
    current = {entry[0]: entry for entry in present}
    return [entry for entry in entries if current.get(entry[0]) != entry]


def _list_namespace(context: Context, scope: Scope) -> Flow[None]:
    """Have the thread list the namespace, and the list of all threads the thread.

    The list is changed even if it has the name: whoever removes the name meanwhile, having found
    the namespace empty before, then sees that he is late.
    """
    key = context.keys.thread(scope.thread)
    for pause in attempts(key):
        found = yield from read(key)
        head = decode_head(key, found)
        if not head.listed:
            yield from add_thread(context, scope.thread)
        entry: Entry = [scope.namespace]
        added = [] if entry in head.entries else [entry]
        head, pages = extend(key, replace(head, listed=True), added)
        yield from put_many(pages)
        if (yield from write_head(key, head, found)):
            return
        yield from delete_many(list(pages))
        yield from pause


def _list_runs(context: Context, scope: Scope, head: Head, entries: list[Entry]) -> Flow[None]:
    """Have the runs of ``entries`` list the namespace, so that they can be deleted by run."""
    known = {entry[4] for entry in head.entries}
    for run_id in sorted({entry[4] for entry in entries if entry[4]} - known):
        key = context.keys.run(run_id)
        for pause in attempts(key):
            found = yield from read(key)
            run, pages = extend(key, decode_head(key, found), [[scope.thread, scope.namespace]])
            yield from put_many(pages)
            if (yield from write_head(key, run, found)):
                break
            yield from delete_many(list(pages))
            yield from pause
