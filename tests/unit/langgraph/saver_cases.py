"""Checkpoints to put, and a saver's whole content to compare."""

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple
from memory_store import MemoryStore

from dapr_runners.langgraph import DaprSaver
from dapr_runners.state import StateStore


def saver_on(store: MemoryStore) -> DaprSaver:
    """A saver as a new process would make it: it remembers nothing."""
    return DaprSaver(cast(StateStore, store))


def config(thread: str, at: str | None = None, namespace: str = "") -> RunnableConfig:
    configurable = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": configurable | ({"checkpoint_id": at} if at else {})}


def checkpoint(name: str, **values: Any) -> Checkpoint:
    versions: dict[str, Any] = {channel: f"{len(name)}.{name}" for channel in values}
    return {
        "v": 4,
        "id": name,
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
        "updated_channels": None,
    }


def put(
    saver: BaseCheckpointSaver[Any],
    thread: str,
    name: str,
    parent: str | None = None,
    namespace: str = "",
    metadata: dict[str, Any] | None = None,
    unchanged: dict[str, str] | None = None,
    **values: Any,
) -> RunnableConfig:
    """Put a checkpoint; ``unchanged`` gives versions of channels its parent had as they are."""
    made = checkpoint(name, **values)
    new_versions = {
        channel: version
        for channel, version in made["channel_versions"].items()
        if channel not in (unchanged or {})
    }
    made["channel_versions"].update(unchanged or {})
    step = cast(Any, {"source": "loop", "step": 1, **(metadata or {})})
    return saver.put(config(thread, parent, namespace), made, step, new_versions)


def content(saver: BaseCheckpointSaver[Any], *threads: str) -> list[CheckpointTuple]:
    """All checkpoints of ``threads`` and all namespaces, in one order."""
    found = [
        each for thread in threads for each in saver.list({"configurable": {"thread_id": thread}})
    ]
    return sorted(found, key=lambda each: str(sorted(each.config["configurable"].items())))


def ids(saver: BaseCheckpointSaver[Any], thread: str) -> list[str]:
    """The ids of a thread's checkpoints, newest first."""
    return [
        each.config["configurable"]["checkpoint_id"]
        for each in saver.list({"configurable": {"thread_id": thread}})
    ]
