"""Pending writes: what the tasks of a checkpoint have written, one log a checkpoint."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    PendingWrite,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dapr_runners.langgraph._checkpoints.context import Context
from dapr_runners.langgraph._checkpoints.flow import Flow, attempts, get_many, put_many, read
from dapr_runners.langgraph._checkpoints.keys import Scope, page_key
from dapr_runners.langgraph._checkpoints.log import (
    EMPTY,
    Entry,
    decode_head,
    decode_head_document,
    decode_page,
    extend,
    missing_page,
    read_entries,
    write_head,
)
from dapr_runners.langgraph._checkpoints.values import (
    FRESH_BYTES,
    StoredForm,
    dump,
    restore,
    store,
)


@dataclass(frozen=True, slots=True)
class Write:
    """One pending write. ``form`` is the stored form of its value."""

    task_id: str
    index: int
    task_path: str
    channel: str
    form: StoredForm

    @property
    def order(self) -> tuple[str, str, int]:
        """Where it comes among the writes of its checkpoint."""
        return writes_sort_key(self.task_path, self.task_id, self.index)


def add_writes(
    context: Context,
    scope: Scope,
    checkpoint_id: str,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> Flow[None]:
    """Record the writes of a task. Of a write recorded twice the first counts, of an error,
    interrupt or resume value the last.

    Raises:
        UnstorableValueError: a value cannot be serialized.
    """
    entries: list[Entry] = []
    documents: dict[str, bytes] = {}
    for position, (channel, value) in enumerate(writes):
        kind, data = dump(context.serde, value, f"A write to channel {channel!r}")
        form, parts = store(scope, kind, data, checkpoint_id, FRESH_BYTES)
        documents.update(parts)
        index = WRITES_IDX_MAP.get(channel, position)
        entries.append([task_id, index, task_path, channel, form])
    yield from put_many(documents)
    key = scope.writes(checkpoint_id)
    yield from context.gates.guard(key, _append(context, key, entries))


def _append(context: Context, key: str, entries: list[Entry]) -> Flow[None]:
    # The log of a checkpoint's first task does not exist yet, and creating it needs no reading.
    found = (yield from read(key)) if context.shared.has_writes.get(key) else None
    for pause in attempts(key):
        head = decode_head(key, found) if found else EMPTY
        recorded = {(entry[0], entry[1]) for entry in head.entries}
        added = [e for e in entries if e[1] < 0 or (e[0], e[1]) not in recorded]
        if not added:
            return
        head, pages = extend(key, head, added)
        yield from put_many(pages)
        if (yield from write_head(key, head, found)):
            context.shared.has_writes.put(key, True)
            return
        yield from pause
        found = yield from read(key)


def decode_writes(key: str, document: bytes | None) -> Flow[list[Write]]:
    """The pending writes in the log ``key`` of which ``document`` is the head, in order.

    Raises:
        CorruptRecordError: a document is missing or damaged.
    """
    if document is None:
        return []
    entries = yield from read_entries(key, decode_head_document(key, document))
    if entries is None:
        raise missing_page(key)
    return sorted(_fold(entries), key=lambda write: write.order)


def documents_of_writes(key: str, document: bytes) -> Flow[tuple[list[str], list[StoredForm]]]:
    """The pages of the log ``key`` of which ``document`` is the head, and the stored values in it
    and in those pages that exist.

    Raises:
        CorruptRecordError: a document is damaged.
    """
    head = decode_head_document(key, document)
    pages = [page_key(key, page) for page in head.pages]
    entries = list(head.entries)
    for page, content in (yield from get_many(pages)).items():
        entries += decode_page(page, content).entries
    return pages, [entry[4] for entry in entries]


def _fold(entries: Iterable[Entry]) -> Iterable[Write]:
    """The writes that count, of all recorded ones."""
    counting: dict[tuple[str, int], Write] = {}
    for task_id, index, task_path, channel, form in entries:
        write = Write(task_id, index, task_path, channel, form)
        if index < 0 or (task_id, index) not in counting:
            counting[task_id, index] = write
    return counting.values()


def load_writes(
    serde: SerializerProtocol,
    scope: Scope,
    checkpoint_id: str,
    writes: Iterable[Write],
    parts: Mapping[str, bytes],
) -> list[PendingWrite]:
    """The values of ``writes``, with the large ones from ``parts``."""
    key = scope.writes(checkpoint_id)
    return [
        (write.task_id, write.channel, restore(serde, scope, write.form, parts, key))
        for write in writes
    ]
