"""A LangGraph checkpointer on the Dapr state API."""

import copy
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from dapr_runners.engine import tenant_mark
from dapr_runners.langgraph._checkpoints.context import Context, Shared
from dapr_runners.langgraph._checkpoints.copy import copy_thread
from dapr_runners.langgraph._checkpoints.delete import delete_for_runs, delete_thread, prune
from dapr_runners.langgraph._checkpoints.delta import delta_history
from dapr_runners.langgraph._checkpoints.errors import InvalidKeyPrefixError
from dapr_runners.langgraph._checkpoints.flow import Flow, T, arun, run
from dapr_runners.langgraph._checkpoints.keys import Keys, content_hash
from dapr_runners.langgraph._checkpoints.listing import Listing
from dapr_runners.langgraph._checkpoints.put import put_checkpoint
from dapr_runners.langgraph._checkpoints.record import NewCheckpoint
from dapr_runners.langgraph._checkpoints.tuples import configurable_of, get_tuple, scope_of
from dapr_runners.langgraph._checkpoints.writes import add_writes
from dapr_runners.state import StateStore


class DaprSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of LangGraph graphs in a Dapr state store.

    Any state store component with ETag support will do; transactions, queries and key listing are
    not needed. One saver serves threads and event loops alike, and many processes may use one
    thread at the same time: none loses what another wrote.

    ``serde`` has the values and the metadata to itself. With the store's encryption (see
    :class:`dapr_runners.state.EncryptionKeys`) all that is kept is encrypted. With a serde that
    encrypts, kept beside that in clear are ids, the names of channels, and ``source``, ``step`` and
    ``run_id`` of the metadata. Of a deleted thread an empty index of some 20 bytes a namespace
    stays.

    Args:
        store: The state store to use (default: the component ``store_name`` of the sidecar that
            the environment names).
        store_name: The name of the state store component; only used without ``store``.
        serde: The serializer of values and metadata (default: LangGraph's own, without pickle).
        key_prefix: What the keys of all documents begin with. Savers with the same prefix and
            store share their threads.

    Raises:
        InvalidKeyPrefixError: ``key_prefix`` is empty or contains ``||``.
        InvalidThreadIdError: a method is given a thread id that is no valid Unicode text.

    Every method raises :class:`SidecarUnreachableError`, :class:`UnauthorizedError` or
    :class:`StateStoreError` if the store cannot be used, and :class:`CorruptRecordError` if a
    document it needs is damaged or missing.
    """

    def __init__(
        self,
        store: StateStore | None = None,
        *,
        store_name: str = "statestore",
        serde: SerializerProtocol | None = None,
        key_prefix: str = "checkpoints",
    ) -> None:
        super().__init__(serde=serde)
        if not key_prefix or "||" in key_prefix:
            raise InvalidKeyPrefixError(key_prefix=key_prefix)
        self.store = store or StateStore(store_name)
        self._shared = Shared(Keys(key_prefix, self._hashed))
        self._is_of_tenant = False

    def for_tenant(self, tenant: str) -> Self:
        """The same saver for the threads of ``tenant`` alone: it finds nothing of another's, nor of
        no tenant's. Raises InvalidTenantError, and ValueError for a saver that is a tenant's."""
        if self._is_of_tenant:
            raise ValueError("this saver is a tenant's already: ask the one that it was made of")
        saver = self.for_mark(tenant_mark(tenant))
        saver._is_of_tenant = True
        return saver

    def for_mark(self, mark: str) -> Self:
        """:meth:`for_tenant`, by what the ids of the tenant's runs begin with."""
        saver = copy.copy(self)
        saver._shared = Shared(Keys(f"{self._shared.keys.prefix}/{mark}", self._hashed))
        return saver

    def _hashed(self, scope: str, data: bytes) -> str:
        if not self.store.is_encrypted:
            return content_hash(scope, data)
        return self.store.content_digest(scope, data).hex()

    # -- reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that ``config`` names by ``checkpoint_id``, or else the latest one of its
        thread and namespace; None if there is none."""
        return self._run(get_tuple(self._context, config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Twin of :meth:`get_tuple`."""
        return await self._arun(get_tuple(self._context, config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first.

        Args:
            config: Names a thread, and perhaps a namespace and a checkpoint; None for all threads.
            filter: Items their metadata must have.
            before: Names a checkpoint; only older ones are listed.
            limit: How many to list at most.
        """
        listing = Listing(self._context, config, filter, before, limit)
        while batch := self._run(listing.next()):
            yield from batch

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Twin of :meth:`list`."""
        listing = Listing(self._context, config, filter, before, limit)
        while batch := await self._arun(listing.next()):
            for each in batch:
                yield each

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the delta ``channels`` of a checkpoint are rebuilt from: their writes, oldest first,
        and the value of the nearest ancestor that has one."""
        return self._run(delta_history(self._context, config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Twin of :meth:`get_delta_channel_history`."""
        return await self._arun(delta_history(self._context, config, channels))

    # -- writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Record a checkpoint, whose parent is the one ``config`` names. Recording it again changes
        nothing.

        Returns:
            The config that names the checkpoint.

        Raises:
            UnstorableValueError: a value or the metadata cannot be serialized.
            CheckpointContentionError: too many others wrote to the thread at the same time.
        """
        self._run(self._put(config, checkpoint, metadata, new_versions))
        return _named(config, checkpoint)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Twin of :meth:`put`."""
        await self._arun(self._put(config, checkpoint, metadata, new_versions))
        return _named(config, checkpoint)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Record what a task wrote, as pending writes of the checkpoint that ``config`` names.

        Raises:
            UnstorableValueError: a value cannot be serialized.
            CheckpointContentionError: too many others wrote to the checkpoint at the same time.
        """
        self._run(self._put_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Twin of :meth:`put_writes`."""
        await self._arun(self._put_writes(config, writes, task_id, task_path))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, with their writes, into another thread."""
        self._run(copy_thread(self._context, str(source_thread_id), str(target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Twin of :meth:`copy_thread`."""
        await self._arun(copy_thread(self._context, str(source_thread_id), str(target_thread_id)))

    # -- deleting

    def delete_thread(self, thread_id: str) -> None:
        """Delete all checkpoints and writes of a thread."""
        self._run(delete_thread(self._context, str(thread_id)))

    async def adelete_thread(self, thread_id: str) -> None:
        """Twin of :meth:`delete_thread`."""
        await self._arun(delete_thread(self._context, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete all checkpoints, and their writes, whose metadata has one of ``run_ids``."""
        self._run(delete_for_runs(self._context, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Twin of :meth:`delete_for_runs`."""
        await self._arun(delete_for_runs(self._context, run_ids))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete checkpoints of threads: with "keep_latest" all but the latest of each namespace
        and those its delta channels are rebuilt from, with "delete" all.

        Raises:
            UnknownPruneStrategyError: ``strategy`` is another one.
        """
        self._run(prune(self._context, thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Twin of :meth:`prune`."""
        await self._arun(prune(self._context, thread_ids, strategy))

    # -- versions

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The version after ``current``: a number, and a random fraction that tells apart the
        versions two branches give the same channel."""
        number = int(str(current).partition(".")[0]) + 1 if current is not None else 1
        return f"{number:032}.{random.random():016}"  # nosec B311 # a tie-breaker, no secret

    # -- flows

    @property
    def _context(self) -> Context:
        # Made anew each time: `with_allowlist` clones the saver and gives the clone another serde.
        return Context(self._shared, self.serde)

    def _run(self, flow: Flow[T]) -> T:
        return run(self.store, flow)

    async def _arun(self, flow: Flow[T]) -> T:
        return await arun(self.store, flow)

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Flow[None]:
        parent = get_checkpoint_id(config)
        new = NewCheckpoint(
            checkpoint,
            get_checkpoint_metadata(config, metadata),
            str(parent) if parent else None,
            new_versions,
        )
        return put_checkpoint(self._context, scope_of(self._context, config), new)

    def _put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> Flow[None]:
        checkpoint_id = str(configurable_of(config)["checkpoint_id"])
        scope = scope_of(self._context, config)
        return add_writes(self._context, scope, checkpoint_id, writes, task_id, task_path)


def _named(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    configurable = configurable_of(config)
    return {
        "configurable": {
            "thread_id": configurable["thread_id"],
            "checkpoint_ns": configurable.get("checkpoint_ns", ""),
            "checkpoint_id": checkpoint["id"],
        }
    }
