"""Checkpoints read back as LangGraph's tuples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id

from dapr_runners.langgraph._checkpoints.context import Context, Stored
from dapr_runners.langgraph._checkpoints.flow import Flow, get_many, read
from dapr_runners.langgraph._checkpoints.keys import Scope
from dapr_runners.langgraph._checkpoints.log import decode_head, read_log
from dapr_runners.langgraph._checkpoints.record import Record, config_of, decode
from dapr_runners.langgraph._checkpoints.values import part_keys
from dapr_runners.langgraph._checkpoints.writes import Write, decode_writes, load_writes
from dapr_runners.state import CorruptRecordError


@dataclass(frozen=True, slots=True)
class Fetched:
    """A checkpoint's documents, of which the large values are still in the store."""

    scope: Scope
    record: Record
    writes: list[Write]

    def part_keys(self) -> Iterator[str]:
        """The keys of its large values."""
        for form in (*self.record.forms.values(), *(write.form for write in self.writes)):
            yield from part_keys(self.scope, form)


def scope_of(context: Context, config: RunnableConfig) -> Scope:
    """The thread and namespace that ``config`` names."""
    configurable = configurable_of(config)
    return context.keys.scope(
        str(configurable["thread_id"]), str(configurable.get("checkpoint_ns", ""))
    )


def configurable_of(config: RunnableConfig) -> dict[str, Any]:
    """The configurable part of ``config``."""
    return config.get("configurable", {})


def get_tuple(context: Context, config: RunnableConfig) -> Flow[CheckpointTuple | None]:
    """The checkpoint that ``config`` names, or the latest one of its namespace."""
    scope = scope_of(context, config)
    checkpoint_id = get_checkpoint_id(config)
    if not checkpoint_id:
        return (yield from _get_latest(context, scope))
    found = yield from fetch([(scope, str(checkpoint_id))])
    for loaded in (yield from load_all(context, found)):
        return loaded._replace(config=config)
    return None


def _get_latest(context: Context, scope: Scope) -> Flow[CheckpointTuple | None]:
    last = ""
    while True:
        head = decode_head(scope.index, (yield from read(scope.index)))
        latest = head.latest
        if not latest:
            return None
        found = yield from fetch([(scope, latest)])
        for loaded in (yield from load_all(context, found)):
            large = found[0].record.large(loaded.checkpoint["channel_versions"])
            context.shared.stored.put(scope.index, Stored(latest, head.sweeps, large))
            return loaded
        if latest == last:
            raise missing_checkpoint(scope, latest)
        # It was removed after the index was read, which names another one by now.
        last = latest


def fetch(wanted: Sequence[tuple[Scope, str]]) -> Flow[list[Fetched]]:
    """The documents of those checkpoints that exist, in the order asked for.

    Raises:
        CorruptRecordError: a document is damaged, and not because it is being removed.
    """
    keys = [scope.checkpoint(checkpoint_id) for scope, checkpoint_id in wanted]
    keys += [scope.writes(checkpoint_id) for scope, checkpoint_id in wanted]
    documents = yield from get_many(keys)
    fetched: list[Fetched] = []
    for scope, checkpoint_id in wanted:
        key = scope.checkpoint(checkpoint_id)
        if key in documents:
            writes_key = scope.writes(checkpoint_id)
            try:
                record = decode(key, documents[key])
                writes = yield from decode_writes(writes_key, documents.get(writes_key))
            except CorruptRecordError:
                if (yield from is_listed(scope, checkpoint_id)):
                    raise
            else:
                fetched.append(Fetched(scope, record, writes))
    return fetched


def load_all(context: Context, found: Sequence[Fetched]) -> Flow[list[CheckpointTuple]]:
    """The tuples of fetched checkpoints, without those that are being removed meanwhile.

    Raises:
        CorruptRecordError: a document is missing or damaged, and not because it is being removed.
    """
    parts = yield from get_many(list({key: None for each in found for key in each.part_keys()}))
    loaded: list[CheckpointTuple] = []
    for each in found:
        try:
            loaded.append(_load(context, each, parts))
        except CorruptRecordError:
            if (yield from is_listed(each.scope, each.record.id)):
                raise
    return loaded


def _load(context: Context, fetched: Fetched, parts: dict[str, bytes]) -> CheckpointTuple:
    scope, record, serde = fetched.scope, fetched.record, context.serde
    return CheckpointTuple(
        config=config_of(scope, record.id),
        checkpoint=record.load_checkpoint(serde, scope, parts),
        metadata=record.load_metadata(serde),
        parent_config=config_of(scope, record.parent) if record.parent else None,
        pending_writes=load_writes(serde, scope, record.id, fetched.writes, parts),
    )


def is_listed(scope: Scope, checkpoint_id: str) -> Flow[bool]:
    """Whether the index has the checkpoint now."""
    _, _, entries = yield from read_log(scope.index)
    return any(entry[0] == checkpoint_id for entry in entries)


def missing_checkpoint(scope: Scope, checkpoint_id: str) -> CorruptRecordError:
    """The error for a checkpoint that the index has and the store has not."""
    return CorruptRecordError(
        key=scope.checkpoint(checkpoint_id), reason="the index names it and it is missing"
    )
