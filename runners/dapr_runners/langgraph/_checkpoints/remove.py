"""Removing checkpoints: from the index first, so that nobody finds them, then their documents.

The index keeps what was removed as trash until the documents are gone, so a removal that was killed
is completed by the next one.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from dapr_runners.langgraph._checkpoints.context import Context
from dapr_runners.langgraph._checkpoints.flow import (
    Flow,
    attempts,
    delete_many,
    get_many,
    put_many,
    read,
)
from dapr_runners.langgraph._checkpoints.keys import Scope, page_key
from dapr_runners.langgraph._checkpoints.log import (
    Entry,
    Head,
    decode_head,
    decode_page,
    extend,
    new_head,
    read_log,
    write_head,
)
from dapr_runners.langgraph._checkpoints.record import decode
from dapr_runners.langgraph._checkpoints.values import part_keys
from dapr_runners.langgraph._checkpoints.writes import documents_of_writes
from dapr_runners.state import CorruptRecordError, StoredValue

Choice = Callable[[dict[str, Entry]], Flow[Collection[str]]]
"""Tells, of the entries of an index by id, the ids of those to keep."""

_BATCH = 100


def remove(context: Context, scope: Scope, choose: Choice, *, touch: bool = False) -> Flow[None]:
    """Remove all checkpoints of a namespace but the chosen ones. ``touch`` has the index written
    even if all are chosen, so that a checkpoint on its way conflicts."""
    return context.gates.guard(scope.index, _remove(scope, choose, touch))


def clear(context: Context, scope: Scope) -> Flow[None]:
    """Remove all checkpoints of a namespace, and mark it as listed nowhere."""
    return context.gates.guard(scope.index, _clear(scope))


def _remove(scope: Scope, choose: Choice, touch: bool) -> Flow[None]:
    for pause in attempts(scope.index):
        found, head, entries = yield from read_log(scope.index)
        current = {entry[0]: entry for entry in entries}
        chosen = yield from choose(current)
        if len(chosen) == len(current):
            if not touch or (yield from write_head(scope.index, head, found)):
                break
            yield from pause
            continue
        kept = [current[checkpoint_id] for checkpoint_id in sorted(chosen)]
        rest, pages = extend(scope.index, _all_trash(head), kept)
        yield from put_many(pages)
        if (yield from write_head(scope.index, replace(rest, listed=head.listed), found)):
            break
        yield from delete_many(list(pages))
        yield from pause
    yield from _sweep(scope)


def _clear(scope: Scope) -> Flow[None]:
    for pause in attempts(scope.index):
        # Also written where there is nothing, so that a checkpoint on its way conflicts.
        found = yield from read(scope.index)
        if (yield from write_head(scope.index, _all_trash(_readable(scope, found)), found)):
            break
        yield from pause
    yield from _sweep(scope)


def _readable(scope: Scope, found: StoredValue | None) -> Head:
    """The head, or a new one if it is corrupt: deleting its thread has to remain possible."""
    try:
        return decode_head(scope.index, found) if found else new_head()
    except CorruptRecordError:
        return new_head()


def _all_trash(head: Head) -> Head:
    """An index without entries, whose trash is all that ``head`` has."""
    return Head(
        sweeps=head.sweeps + 1,
        trash_pages=(*head.trash_pages, *head.pages),
        trash=(*head.trash, *head.entries),
    )


def _sweep(scope: Scope) -> Flow[None]:
    """Delete the documents of removed checkpoints, and forget them."""
    _, head, entries = yield from read_log(scope.index)
    if not head.trash and not head.trash_pages:
        return
    live = {entry[0] for entry in entries}
    removed = {entry[0] for entry in head.trash}
    trash_pages = [page_key(scope.index, page) for page in head.trash_pages]
    for key, document in (yield from get_many(trash_pages)).items():
        try:
            removed |= {entry[0] for entry in decode_page(key, document).entries}
        except CorruptRecordError:
            continue
    records: list[str] = []
    values: set[str] = set()
    for batch in _batches(sorted(removed - live)):
        batch_records, batch_values = yield from _documents(scope, batch)
        records += batch_records
        values |= batch_values
    if values:
        for batch in _batches(sorted(live)):
            _, in_use = yield from _documents(scope, batch)
            values -= in_use
    # The records tell of the values, so they go last.
    yield from delete_many(sorted(values))
    yield from delete_many(records)
    yield from delete_many(trash_pages)
    yield from _forget(scope, head)


def _documents(scope: Scope, checkpoint_ids: Sequence[str]) -> Flow[tuple[list[str], set[str]]]:
    """The keys of the records of checkpoints, and of the values they refer to."""
    keys = [scope.checkpoint(checkpoint_id) for checkpoint_id in checkpoint_ids]
    writes_keys = [scope.writes(checkpoint_id) for checkpoint_id in checkpoint_ids]
    documents = yield from get_many([*keys, *writes_keys])
    records = list(documents)
    values: set[str] = set()
    for key, document in documents.items():
        try:
            if key in keys:
                forms = list(decode(key, document).forms.values())
            else:
                pages, forms = yield from documents_of_writes(key, document)
                records += pages
        except CorruptRecordError:
            continue
        values.update(part for form in forms for part in part_keys(scope, form))
    return records, values


def _forget(scope: Scope, swept: Head) -> Flow[None]:
    """Take the trash of ``swept`` out of the index."""
    for pause in attempts(scope.index):
        found = yield from read(scope.index)
        head = decode_head(scope.index, found)
        left = replace(
            head,
            trash_pages=tuple(p for p in head.trash_pages if p not in swept.trash_pages),
            trash=tuple(entry for entry in head.trash if entry not in swept.trash),
        )
        if left == head or (yield from write_head(scope.index, left, found)):
            return
        yield from pause


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    yield from (ids[start : start + _BATCH] for start in range(0, len(ids), _BATCH))
