"""One run in this process: what it was called with, its graph, its saver, its artifacts."""

import logging
from dataclasses import dataclass, field
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from dapr_runners.engine import (
    BlockingIO,
    artifact_prefix,
    needs_parts,
    record_key,
    run_in_thread,
)
from dapr_runners.langgraph._faults import steadily
from dapr_runners.langgraph._outbox import OutboxSaver
from dapr_runners.langgraph._parts import PartReader, PartWriter
from dapr_runners.langgraph._route import current_route
from dapr_runners.langgraph._specs import Call, Extras
from dapr_runners.state import ArtifactCache, Artifacts, Codec, StateStore, UnstorableValueError

logger = logging.getLogger("dapr_runners")


@dataclass
class Scope:
    """A run that this process works on."""

    run: str
    is_async: bool
    call: Call
    extras: Extras
    graph: Pregel[Any, Any, Any, Any]
    outbox: OutboxSaver | None
    codec: Codec
    store: StateStore
    cache: ArtifactCache
    artifact_limit: int
    before: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    """By lane, the hashes of the larger values in its last record."""
    calls: list[str] = field(default_factory=list[str])
    """Record keys of @task calls that no step's record names yet."""

    @property
    def saver(self) -> BaseCheckpointSaver[Any] | None:
        """Where the outbox is sent."""
        return None if self.outbox is None else self.outbox.real

    @property
    def is_live(self) -> bool:
        """Whether chunks are told as they come, and not with their record."""
        return self.call.is_live(self.graph)

    @property
    def tenant_id(self) -> str:
        """For whom the run is, as its call says in ``config["configurable"]["tenant_id"]``."""
        return str(self.call.config.get("configurable", {}).get("tenant_id") or "")

    def config(self) -> Any:
        """The config of the call, with what belongs to this process."""
        config = {**self.call.config, "configurable": {**self.call.config.get("configurable", {})}}
        if self.extras.callbacks is not None:
            config["callbacks"] = self.extras.callbacks
        return config

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for ``Pregel.stream``."""
        arguments = dict(self.call.arguments)
        if self.call.has_context:
            arguments["context"] = self.call.context
        if self.extras.control is not None:
            arguments["control"] = self.extras.control
        return arguments

    # -- values

    @property
    def artifacts(self) -> Artifacts:
        """The run's large values."""
        prefix = artifact_prefix(self.run)
        return Artifacts(self.store, prefix, self.artifact_limit, cache=self.cache)

    def writer(self, lane: str) -> PartWriter:
        """For the next record of ``lane``."""
        return PartWriter(self.codec, self.before.get(lane, set()), self.artifacts)

    async def store_artifacts(self, parts: PartWriter, is_async: bool) -> None:
        """Store what a record made of ``parts`` refers to."""
        contents = list(parts.artifacts.values())
        if contents and is_async:
            await self.artifacts.aput_many(contents)
        elif contents:
            self.artifacts.put_many(contents)

    async def reader(self, names: list[str], is_async: bool) -> PartReader:
        """For a record that refers to the artifacts ``names``."""
        if not names:
            return PartReader(self.codec, {})
        if is_async:
            return PartReader(self.codec, await self.artifacts.aget_many(names))
        return PartReader(self.codec, self.artifacts.get_many(names))

    # -- @task calls

    def record_call(self, is_async: bool) -> Any:
        """Stores what a @task call returned, at once, for a re-run of the node that made it."""

        def record(task_id: str, name: str, writes: list[tuple[str, Any]]) -> None:
            where = f"the result of task {name!r}"
            try:
                parts = [[channel, self.codec.encode(value, where)] for channel, value in writes]
            except UnstorableValueError as refused:
                if (route := current_route.get()) is not None:
                    route.refused = route.refused or refused
                return
            route = current_route.get()
            messages = [] if route is None or route.notes is None else route.notes.made_in(task_id)
            data = self.codec.encode(
                {"writes": parts, "messages": messages} if messages else parts, where
            )
            key = self._call_key(task_id)
            if is_async and not needs_parts(data):
                # On the event loop: sent, not waited for. Lost only if the process dies now, and
                # then the call is one that was in flight.
                self.store.put_soon(key, data)
            else:
                steadily(lambda: run_in_thread(BlockingIO(self.store).create(key, data)))

        return record

    def _call_key(self, task_id: str) -> str:
        key = f"call/{task_id}"
        self.calls.append(key)
        return record_key(self.run, key)

    def take_calls(self) -> list[str]:
        """Record keys of the @task calls since it was last asked."""
        calls, self.calls = self.calls, []
        return sorted(set(calls))

    def recall(self, task_id: str) -> list[tuple[str, Any]] | None:
        """The recorded writes of a @task call."""
        key = self._call_key(task_id)
        data = steadily(lambda: run_in_thread(BlockingIO(self.store).get(key)))
        if data is None:
            return None
        parts: Any = self.codec.decode(data, key)
        if isinstance(parts, dict):  # it has messages
            told = cast(dict[str, Any], parts)
            if (route := current_route.get()) is not None and route.notes is not None:
                route.notes.recall(task_id, told["messages"])
            parts = told["writes"]
        return [(channel, self.codec.decode(value, key)) for channel, value in parts]
