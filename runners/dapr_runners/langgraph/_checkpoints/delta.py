"""What a delta channel is rebuilt from: its writes, back to the checkpoint that has its value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory, PendingWrite, get_checkpoint_id

from dapr_runners.langgraph._checkpoints.context import Context
from dapr_runners.langgraph._checkpoints.cursor import Cursor
from dapr_runners.langgraph._checkpoints.flow import Flow, get_many, read
from dapr_runners.langgraph._checkpoints.keys import Scope
from dapr_runners.langgraph._checkpoints.log import Head, decode_head, removed_since
from dapr_runners.langgraph._checkpoints.tuples import (
    Fetched,
    fetch,
    missing_checkpoint,
    scope_of,
)
from dapr_runners.langgraph._checkpoints.values import StoredForm, part_keys, restore
from dapr_runners.langgraph._checkpoints.writes import Write
from dapr_runners.state import CorruptRecordError

_BATCH = 32
"""The most ancestors read at once."""


@dataclass(slots=True)
class _Found:
    """What was found for one channel, newest first."""

    writes: list[tuple[str, Write]] = field(default_factory=list[tuple[str, Write]])
    seed: tuple[str, StoredForm] | None = None


def delta_history(
    context: Context, config: RunnableConfig, channels: Sequence[str]
) -> Flow[Mapping[str, DeltaChannelHistory]]:
    """For each of ``channels``, the writes on the way from an ancestor of the checkpoint that has
    the channel's value, and that value."""
    scope = scope_of(context, config)
    while True:
        head = decode_head(scope.index, (yield from read(scope.index)))
        found = {channel: _Found() for channel in channels}
        target = str(get_checkpoint_id(config) or head.latest)
        try:
            yield from _walk(scope, Ancestors(scope, head, target), found)
            return (yield from _load(context, scope, found))
        except CorruptRecordError:
            if not (yield from removed_since(scope.index, head)):
                raise


def _walk(scope: Scope, ancestors: "Ancestors", found: dict[str, _Found]) -> Flow[None]:
    batch = 1
    while not all(channel.seed for channel in found.values()):
        ids = yield from ancestors.next(batch)
        if not ids:
            return
        batch = min(2 * batch, _BATCH)
        fetched = {
            each.record.id: each
            for each in (yield from fetch([(scope, checkpoint_id) for checkpoint_id in ids]))
        }
        for checkpoint_id in ids:
            if checkpoint_id not in fetched:
                raise missing_checkpoint(scope, checkpoint_id)
            _collect(fetched[checkpoint_id], found)


def _collect(each: Fetched, found: dict[str, _Found]) -> None:
    key = each.scope.writes(each.record.id)
    for write in reversed(each.writes):
        channel = found.get(write.channel)
        if channel and not channel.seed:
            channel.writes.append((key, write))
    # The value is the one before the checkpoint's own writes, which lead to its child.
    for name, channel in found.items():
        if name in each.record.forms and not channel.seed:
            channel.seed = (each.record.key, each.record.forms[name])


def _load(
    context: Context, scope: Scope, found: dict[str, _Found]
) -> Flow[dict[str, DeltaChannelHistory]]:
    forms = [write.form for channel in found.values() for _, write in channel.writes]
    forms += [channel.seed[1] for channel in found.values() if channel.seed]
    parts = yield from get_many(
        list({key: None for form in forms for key in part_keys(scope, form)})
    )
    histories: dict[str, DeltaChannelHistory] = {}
    for name, channel in found.items():
        writes: list[PendingWrite] = [
            (write.task_id, name, restore(context.serde, scope, write.form, parts, key))
            for key, write in reversed(channel.writes)
        ]
        histories[name] = {"writes": writes}
        if channel.seed:
            key, form = channel.seed
            histories[name]["seed"] = restore(context.serde, scope, form, parts, key)
    return histories


class Ancestors:
    """The ids of a checkpoint's ancestors, nearest first, as far as the index has them."""

    def __init__(self, scope: Scope, head: Head, checkpoint_id: str) -> None:
        self._cursor = Cursor(scope.index, head)
        self._parents: dict[str, str | None] = {}
        self._at: str | None = checkpoint_id
        self._walked: set[str] = set()

    def next(self, count: int) -> Flow[list[str]]:
        """The next ``count`` ids; fewer at the end."""
        ids: list[str] = []
        while len(ids) < count and self._at is not None and self._at not in self._walked:
            self._walked.add(self._at)
            parent = yield from self._parent(self._at)
            if parent is not None and (yield from self._has(parent)):
                ids.append(parent)
                self._at = parent
            else:
                self._at = None
        return ids

    def _parent(self, checkpoint_id: str) -> Flow[str | None]:
        yield from self._has(checkpoint_id)
        return self._parents.get(checkpoint_id)

    def _has(self, checkpoint_id: str) -> Flow[bool]:
        """Whether the index has the checkpoint: it is read down to its id."""
        while checkpoint_id not in self._parents:
            entry = yield from self._cursor.next()
            if entry is None:
                return False
            self._parents[entry[0]] = entry[1]
            if entry[0] < checkpoint_id:
                return checkpoint_id in self._parents
        return True
