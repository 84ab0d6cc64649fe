"""A checkpoint as one document, with its large values beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dapr_runners.langgraph._checkpoints.context import Stored
from dapr_runners.langgraph._checkpoints.frame import pack, unpack_fields
from dapr_runners.langgraph._checkpoints.keys import Scope
from dapr_runners.langgraph._checkpoints.log import Entry
from dapr_runners.langgraph._checkpoints.values import (
    FRESH_BYTES,
    RECORD_BYTES,
    SETTLED_BYTES,
    StoredForm,
    dump,
    load,
    restore,
    store,
)


@dataclass(frozen=True, slots=True)
class NewCheckpoint:
    """A checkpoint to put, with what the saver was told about it."""

    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent: str | None
    new_versions: ChannelVersions

    @property
    def id(self) -> str:
        """The checkpoint's id."""
        return self.checkpoint["id"]

    @property
    def run_id(self) -> str | None:
        """The id of the run that made it, if its metadata has one."""
        run_id = self.metadata.get("run_id")
        return run_id if isinstance(run_id, str) else None

    def entry(self) -> Entry:
        """What the index has of it: enough to follow parents and for the usual filters."""
        source, step = self.metadata.get("source"), self.metadata.get("step")
        return [
            self.id,
            self.parent,
            source if isinstance(source, str) else None,
            step if type(step) is int else None,
            self.run_id,
        ]


@dataclass(frozen=True, slots=True)
class Encoded:
    """The documents of a checkpoint, its own first, and its large values by channel."""

    documents: dict[str, bytes]
    large: dict[str, tuple[Any, StoredForm]]


def encode(
    serde: SerializerProtocol, scope: Scope, new: NewCheckpoint, parent: Stored | None
) -> Encoded:
    """The documents of a checkpoint. Large values that its ``parent`` has are referred to.

    Raises:
        UnstorableValueError: a value or the metadata cannot be serialized.
    """
    checkpoint = cast("dict[str, Any]", new.checkpoint.copy())
    values = cast("dict[str, Any]", checkpoint.pop("channel_values"))
    versions = new.checkpoint["channel_versions"]
    forms: dict[str, StoredForm] = {}
    large: dict[str, tuple[Any, StoredForm]] = {}
    documents: dict[str, bytes] = {scope.checkpoint(new.id): b""}
    room = RECORD_BYTES
    known = parent.values if parent and parent.checkpoint_id == new.parent else {}
    for channel, value in values.items():
        version = versions.get(channel)
        fresh = channel in new.new_versions
        inherited = None if fresh else known.get(channel)
        if inherited and inherited[0] == version:
            forms[channel], parts = inherited[1], {}
        else:
            kind, data = dump(serde, value, f"The value of channel {channel!r}")
            limit = min(room, FRESH_BYTES if fresh else SETTLED_BYTES)
            forms[channel], parts = store(scope, kind, data, new.id, limit)
            room -= 0 if parts else len(data)
        documents.update(parts)
        if len(forms[channel]) == 3:
            large[channel] = (version, forms[channel])
    documents[scope.checkpoint(new.id)] = pack(
        [
            new.id,
            new.parent,
            *dump(serde, checkpoint, "The checkpoint"),
            *dump(serde, new.metadata, "The checkpoint's metadata"),
            forms,
        ]
    )
    return Encoded(documents, large)


@dataclass(frozen=True, slots=True)
class Record:
    """A checkpoint's document. ``forms`` has the stored form of each channel's value."""

    key: str
    id: str
    parent: str | None
    checkpoint: tuple[str, bytes]
    metadata: tuple[str, bytes]
    forms: dict[str, StoredForm]

    def load_metadata(self, serde: SerializerProtocol) -> CheckpointMetadata:
        """The metadata."""
        return cast(CheckpointMetadata, load(serde, *self.metadata, self.key))

    def load_checkpoint(
        self, serde: SerializerProtocol, scope: Scope, parts: Mapping[str, bytes]
    ) -> Checkpoint:
        """The checkpoint, with its large values from ``parts``."""
        checkpoint = cast("dict[str, Any]", load(serde, *self.checkpoint, self.key))
        checkpoint["channel_values"] = {
            channel: restore(serde, scope, form, parts, self.key)
            for channel, form in self.forms.items()
        }
        return cast(Checkpoint, checkpoint)

    def large(self, versions: ChannelVersions) -> dict[str, tuple[Any, StoredForm]]:
        """The large values by channel, as :class:`Stored` has them."""
        return {
            channel: (versions.get(channel), form)
            for channel, form in self.forms.items()
            if len(form) == 3
        }


def decode(key: str, document: bytes) -> Record:
    """The record of a checkpoint in ``document``.

    Raises:
        CorruptRecordError: it is not one, or damaged.
    """
    fields = unpack_fields(
        key, document, "a checkpoint", str, str | None, str, bytes, str, bytes, dict
    )
    checkpoint_id, parent, kind, data, metadata_kind, metadata, forms = fields
    return Record(key, checkpoint_id, parent, (kind, data), (metadata_kind, metadata), forms)


def config_of(scope: Scope, checkpoint_id: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {
        "configurable": {
            "thread_id": scope.thread,
            "checkpoint_ns": scope.namespace,
            "checkpoint_id": checkpoint_id,
        }
    }
