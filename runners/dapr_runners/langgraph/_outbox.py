"""The saver of a running graph: writes are kept, recorded with the step, and only then sent on.

So a step that is run again after a crash sends the same checkpoints again instead of making new
ones, and the user's saver holds each exactly once. What is kept is read back through
:class:`OutboxSaver`, so that a subgraph called twice in one node finds its own checkpoints.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)

from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._faults import steadily, steadily_async
from dapr_runners.langgraph._parts import PartReader, PartWriter
from dapr_runners.langgraph._route import Route, current_route
from dapr_runners.langgraph._snapshot import (
    freeze_checkpoint,
    freeze_writes,
    thaw_checkpoint,
    thaw_writes,
)

_PUT, _WRITES = "put", "writes"
Writes: TypeAlias = list[tuple[str, str, Any]]


class OutboxSaver(BaseCheckpointSaver[Any]):
    """Keeps what a graph writes to ``real``; reads see what is kept."""

    def __init__(
        self,
        real: BaseCheckpointSaver[Any],
        outlet: Callable[[], Route | None] = lambda: None,
    ) -> None:
        super().__init__(serde=real.serde)
        self.real = real
        self._outlet = outlet

    def toward(self, outlet: Callable[[], Route | None]) -> "OutboxSaver":
        """The same saver, which keeps what is written where ``outlet`` says, if the context does
        not."""
        return OutboxSaver(self.real, outlet)

    def _box(self) -> list[Any]:
        route = current_route.get() or self._outlet()
        if route is None:
            raise RuntimeError("a saver was used outside of every activity of its run")
        return route.box

    @property
    def config_specs(self) -> list[Any]:
        return self.real.config_specs

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.real.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Any) -> "OutboxSaver":
        return OutboxSaver(self.real.with_allowlist(extra_allowlist), self._outlet)

    # -- writing

    def put(
        self,
        config: Any,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Any:
        kept = _kept_config(config)
        self._box().append([_PUT, kept, checkpoint, dict(metadata), dict(new_versions)])
        return _place(kept, checkpoint["id"])

    def put_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._box().append([_WRITES, _kept_config(config), list(writes), task_id, task_path])

    async def aput(
        self,
        config: Any,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Any:
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.put_writes(config, writes, task_id, task_path)

    # -- reading

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        kept = self._find(config)
        return kept or self._merged(steadily(lambda: self.real.get_tuple(config)))

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        kept = self._find(config)
        return kept or self._merged(await steadily_async(lambda: self.real.aget_tuple(config)))

    def list(self, config: Any, **kwargs: Any) -> Iterator[CheckpointTuple]:
        yield from self.real.list(config, **kwargs)

    async def alist(self, config: Any, **kwargs: Any) -> AsyncIterator[CheckpointTuple]:
        async for found in self.real.alist(config, **kwargs):
            yield found

    def get_delta_channel_history(self, **kwargs: Any) -> Any:
        return steadily(lambda: self.real.get_delta_channel_history(**kwargs))

    async def aget_delta_channel_history(self, **kwargs: Any) -> Any:
        return await steadily_async(lambda: self.real.aget_delta_channel_history(**kwargs))

    def _find(self, config: Any) -> CheckpointTuple | None:
        """The checkpoint that ``config`` names (the newest without an id) among the kept."""
        conf = config[lg.CONF]
        thread, ns = conf.get("thread_id"), conf.get("checkpoint_ns", "")
        wanted = conf.get("checkpoint_id")
        for entry in reversed(self._box()):
            if entry[0] != _PUT:
                continue
            at, checkpoint, metadata = entry[1], entry[2], entry[3]
            place = at["configurable"]
            if place.get("thread_id") != thread or place.get("checkpoint_ns", "") != ns:
                continue
            if wanted is None or checkpoint["id"] == wanted:
                parent = place.get("checkpoint_id")
                return CheckpointTuple(
                    config=_place(at, checkpoint["id"]),
                    checkpoint=checkpoint,
                    metadata=get_checkpoint_metadata(at, metadata),
                    parent_config=_place(at, parent) if parent else None,
                    pending_writes=self._kept_writes(thread, ns, checkpoint["id"]),
                )
        return None

    def _merged(self, found: CheckpointTuple | None) -> CheckpointTuple | None:
        if found is None or not self._box():
            return found
        place: dict[str, Any] = cast(Any, found.config)[lg.CONF]
        kept = self._kept_writes(
            place.get("thread_id"), place.get("checkpoint_ns", ""), place["checkpoint_id"]
        )
        if not kept:
            return found
        # Writes of a task replace those it wrote before.
        tasks = {task for task, _, _ in kept}
        old = [write for write in found.pending_writes or [] if write[0] not in tasks]
        return found._replace(pending_writes=[*old, *kept])

    def _kept_writes(self, thread: Any, ns: str, checkpoint: str) -> "Writes":
        found: Writes = []
        for entry in self._box():
            place = entry[1]["configurable"]
            if entry[0] == _WRITES and (
                place.get("thread_id"),
                place.get("checkpoint_ns", ""),
                place.get("checkpoint_id"),
            ) == (thread, ns, checkpoint):
                found.extend((entry[3], channel, value) for channel, value in entry[2])
        return found


def _kept_config(config: Any) -> dict[str, Any]:
    """What savers read of a config: where, and the plain values that become metadata."""
    configurable = {
        key: value
        for key, value in config[lg.CONF].items()
        if not key.startswith("__") and _is_plain(value)
    }
    if (where := config[lg.CONF].get(lg.CONFIG_KEY_CHECKPOINT_MAP)) is not None:
        configurable[lg.CONFIG_KEY_CHECKPOINT_MAP] = dict(where)
    metadata = {k: v for k, v in (config.get("metadata") or {}).items() if _is_plain(v)}
    return {"configurable": configurable, "metadata": metadata}


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (str, int, float, bool)


def _place(config: dict[str, Any], checkpoint: str) -> Any:
    at = config["configurable"]
    return {
        "configurable": {
            "thread_id": at.get("thread_id"),
            "checkpoint_ns": at.get("checkpoint_ns", ""),
            "checkpoint_id": checkpoint,
        }
    }


def saved_tasks(box: list[Any]) -> dict[str, bool]:
    """Of the tasks whose writes are kept, the ids, and whether they have ended well."""
    failures = (lg.ERROR, lg.INTERRUPT)
    return {
        entry[3]: not any(channel in failures for channel, _ in entry[2])
        for entry in box
        if entry[0] == _WRITES
    }


# -- recorded form


def freeze_box(box: list[Any], parts: PartWriter) -> list[list[Any]]:
    """The kept writes as plain data."""
    frozen: list[list[Any]] = []
    for entry in box:
        if entry[0] == _PUT:
            _, config, checkpoint, metadata, versions = entry
            frozen.append(
                [
                    _PUT,
                    config,
                    freeze_checkpoint(checkpoint, parts),
                    parts.put(metadata, "the checkpoint's metadata"),
                    versions,
                ]
            )
        else:
            _, config, writes, task_id, task_path = entry
            where = "a write to the saver"
            frozen.append(
                [_WRITES, config, freeze_writes(writes, parts, where), task_id, task_path]
            )
    return frozen


def send_box(frozen: list[list[Any]], parts: PartReader, saver: BaseCheckpointSaver[Any]) -> None:
    """Send recorded writes to ``saver``. Doing it twice gives the same history."""
    for entry in frozen:
        if entry[0] == _PUT:
            _, config, checkpoint, metadata, versions = entry
            saver.put(
                config,
                thaw_checkpoint(checkpoint, parts),
                parts.get(metadata, "the checkpoint's metadata"),
                versions,
            )
        else:
            _, config, writes, task_id, task_path = entry
            path = [task_path] if _takes_path(saver.put_writes) else []
            saver.put_writes(config, thaw_writes(writes, parts), task_id, *path)


async def send_box_async(
    frozen: list[list[Any]], parts: PartReader, saver: BaseCheckpointSaver[Any]
) -> None:
    """Twin of :func:`send_box`."""
    for entry in frozen:
        if entry[0] == _PUT:
            _, config, checkpoint, metadata, versions = entry
            await saver.aput(
                config,
                thaw_checkpoint(checkpoint, parts),
                parts.get(metadata, "the checkpoint's metadata"),
                versions,
            )
        else:
            _, config, writes, task_id, task_path = entry
            path = [task_path] if _takes_path(saver.aput_writes) else []
            await saver.aput_writes(config, thaw_writes(writes, parts), task_id, *path)


def _takes_path(put_writes: Any) -> bool:
    """Whether a saver stores the paths of tasks: those made for LangGraph 0.2 do not."""
    return "task_path" in inspect.signature(put_writes).parameters
