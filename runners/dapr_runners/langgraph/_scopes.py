"""The runs this process works on."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from dapr_runners.engine import IO, mark_of, spec_key, unpack_spec
from dapr_runners.langgraph._outbox import OutboxSaver
from dapr_runners.langgraph._scope import Scope
from dapr_runners.langgraph._specs import Call, Extras
from dapr_runners.state import ArtifactCache, Codec, CorruptRecordError, StateStore

_SCOPES = 512


class Scopes:
    """Opens runs of one graph, and keeps the last ``_SCOPES`` open."""

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        codec: Codec,
        store: StateStore,
        saver: Callable[[str], BaseCheckpointSaver[Any]],
        artifact_limit: int,
    ) -> None:
        self._graph = graph
        self._codec = codec
        self._store = store
        self._saver = saver
        self._artifact_limit = artifact_limit
        self._artifacts = ArtifactCache()
        self._lock = threading.Lock()
        self._scopes: OrderedDict[str, Scope] = OrderedDict()
        self._extras: dict[str, Extras] = {}

    def lend(self, run: str, extras: Extras) -> None:
        """Give a run what it has in this process only."""
        with self._lock:
            self._extras[run] = extras

    def is_new(self, run: str) -> bool:
        """Whether this process has started ``run`` and not opened it yet."""
        extras = self._extras.get(run)
        return extras is not None and extras.spec is not None

    async def get(self, run: str, mode: str, io: IO) -> Scope:
        """The run ``run``, of mode "sync" or "async"."""
        scope = self._scopes.get(run)
        if scope is None:
            call = Call.unpack(self._codec, await self._spec(run, io), run)
            scope = self._open(run, call, mode)
            with self._lock:
                self._scopes[run] = scope
                while len(self._scopes) > _SCOPES:
                    self._scopes.popitem(last=False)
        return scope

    async def _spec(self, run: str, io: IO) -> dict[str, Any]:
        extras = self._extras.get(run)
        if extras is not None and extras.spec is not None:
            spec, extras.spec = extras.spec, None
            return spec
        data = await io.get(spec_key(run))
        if data is None:
            raise CorruptRecordError(key=spec_key(run), reason="it is gone")
        return unpack_spec(self._codec, data, run)

    def _open(self, run: str, call: Call, mode: str) -> Scope:
        outbox = OutboxSaver(self._saver(mark_of(run))) if call.saver else None
        return Scope(
            run=run,
            is_async=mode == "async",
            call=call,
            extras=self._extras.get(run) or Extras(),
            graph=self._graph,
            outbox=outbox,
            codec=self._codec,
            store=self._store,
            cache=self._artifacts,
            artifact_limit=self._artifact_limit,
        )

    def forget(self, run: str) -> None:
        """Drop what is held for ``run``."""
        with self._lock:
            self._scopes.pop(run, None)
            self._extras.pop(run, None)
