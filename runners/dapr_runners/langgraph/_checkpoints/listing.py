"""Listing checkpoints, newest first, of one namespace, of a thread, or of all threads."""

import heapq
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id

from dapr_runners.langgraph._checkpoints.context import Context
from dapr_runners.langgraph._checkpoints.cursor import Cursor
from dapr_runners.langgraph._checkpoints.flow import Flow, get_many
from dapr_runners.langgraph._checkpoints.keys import Scope
from dapr_runners.langgraph._checkpoints.log import (
    Entry,
    decode_head_document,
    read_entries,
    read_log,
)
from dapr_runners.langgraph._checkpoints.threads import all_threads
from dapr_runners.langgraph._checkpoints.tuples import (
    configurable_of,
    fetch,
    is_listed,
    load_all,
    missing_checkpoint,
)

_BATCH = 32
"""Checkpoints read at once."""
_INDEXED = {"source": 2, "step": 3, "run_id": 4}
"""Metadata in the index, and where an entry has it."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A cursor and its next entry. The one with the greatest id comes first."""

    entry: Entry
    scope: Scope
    cursor: Cursor

    def __lt__(self, other: "_Place") -> bool:
        return self.entry[0] > other.entry[0]


class Listing:
    """The checkpoints that match, in batches."""

    def __init__(
        self,
        context: Context,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self._context = context
        self._config = config
        self._wanted = wanted or {}
        self._before = get_checkpoint_id(before) if before else None
        self._only = get_checkpoint_id(config) if config else None
        self._left = limit
        self._places: list[_Place] | None = None

    def next(self) -> Flow[list[CheckpointTuple]]:
        """The next matching checkpoints, or an empty list after the last one."""
        if self._places is None:
            self._places = yield from self._open()
        while self._left is None or self._left > 0:
            candidates = yield from self._candidates(self._places)
            if not candidates:
                return []
            matching = yield from self._load(candidates)
            if matching:
                matching = matching[: self._left]
                if self._left is not None:
                    self._left -= len(matching)
                return matching
        return []

    def _open(self) -> Flow[list[_Place]]:
        """A cursor in each namespace there is to look in."""
        scopes = yield from self._scopes()
        documents = yield from get_many([scope.index for scope in scopes])
        places: list[_Place] = []
        for scope in scopes:
            if scope.index in documents:
                head = decode_head_document(scope.index, documents[scope.index])
                cursor = Cursor(scope.index, head, self._before)
                entry = yield from cursor.next()
                if entry:
                    places.append(_Place(entry, scope, cursor))
        heapq.heapify(places)
        return places

    def _scopes(self) -> Flow[list[Scope]]:
        keys = self._context.keys
        if self._config is None:
            return (yield from scopes_of(self._context, (yield from all_threads(keys))))
        configurable = configurable_of(self._config)
        thread, namespace = str(configurable["thread_id"]), configurable.get("checkpoint_ns")
        if namespace is None:
            return (yield from scopes_of(self._context, [thread]))
        return [keys.scope(thread, namespace)]

    def _candidates(self, places: list[_Place]) -> Flow[list[tuple[Scope, str]]]:
        """The next checkpoints which, as far as the index tells, match."""
        unindexed = self._wanted.keys() - _INDEXED.keys()
        size = _BATCH if self._left is None or unindexed else min(_BATCH, self._left)
        candidates: list[tuple[Scope, str]] = []
        while places and len(candidates) < size:
            place = places[0]
            if self._may_match(place.entry):
                candidates.append((place.scope, place.entry[0]))
            entry = yield from place.cursor.next()
            if entry:
                heapq.heapreplace(places, _Place(entry, place.scope, place.cursor))
            else:
                heapq.heappop(places)
        return candidates

    def _may_match(self, entry: Entry) -> bool:
        if self._only and entry[0] != self._only:
            return False
        return all(
            key not in _INDEXED or entry[_INDEXED[key]] is None or entry[_INDEXED[key]] == value
            for key, value in self._wanted.items()
        )

    def _load(self, candidates: list[tuple[Scope, str]]) -> Flow[list[CheckpointTuple]]:
        found = yield from fetch(candidates)
        if len(found) < len(candidates):
            existing = {(each.scope, each.record.id) for each in found}
            for scope, checkpoint_id in candidates:
                if (scope, checkpoint_id) not in existing and (
                    yield from is_listed(scope, checkpoint_id)
                ):
                    raise missing_checkpoint(scope, checkpoint_id)
        serde = self._context.serde
        matching = [
            each
            for each in found
            if not self._wanted or self._matches(each.record.load_metadata(serde))
        ]
        return (yield from load_all(self._context, matching))

    def _matches(self, metadata: Any) -> bool:
        return all(metadata.get(key) == value for key, value in self._wanted.items())


def scopes_of(context: Context, threads: list[str]) -> Flow[list[Scope]]:
    """All namespaces of ``threads``."""
    keys = [context.keys.thread(thread) for thread in threads]
    documents = yield from get_many(keys)
    scopes: dict[Scope, None] = {}
    for thread, key in zip(threads, keys, strict=True):
        if key in documents:
            entries = yield from read_entries(key, decode_head_document(key, documents[key]))
            if entries is None:
                _, _, entries = yield from read_log(key)
            scopes.update({context.keys.scope(thread, entry[0]): None for entry in entries})
    return list(scopes)
