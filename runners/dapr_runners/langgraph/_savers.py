"""The checkpointer of a run: the graph's own, or ours; and of a tenant's run, one of the tenant."""

from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from dapr_runners.engine import Recent, digest, safe_name
from dapr_runners.langgraph._saver import DaprSaver
from dapr_runners.langgraph.errors import UnsupportedGraphError
from dapr_runners.state import StateStore

_KEPT = 256


class Savers:
    """The checkpointers of the runs of one runner."""

    def __init__(self, runner: str, graph: Pregel[Any, Any, Any, Any], store: StateStore) -> None:
        self._runner = runner
        self._graph = graph
        self._store = store
        self._ours: DaprSaver | None = None
        self._of_tenants: Recent[str, DaprSaver] = Recent(_KEPT)

    def of(self, mark: str) -> BaseCheckpointSaver[Any]:
        """For the runs of the tenant that has ``mark``. Raises UnsupportedGraphError when the
        graph's own would mix the threads of tenants."""
        saver: BaseCheckpointSaver[Any] = cast(Any, self._graph).checkpointer
        if not isinstance(saver, BaseCheckpointSaver):  # pyright: ignore[reportUnnecessaryIsInstance]
            saver = self._default()
        if not mark:
            return saver
        if not isinstance(saver, DaprSaver):
            raise UnsupportedGraphError(
                runner=self._runner,
                reason=f"its checkpointer, a {type(saver).__name__}, keeps the threads of all"
                " tenants under their bare ids, where one could read another's",
                remedy="Compile it with a DaprSaver, or without a checkpointer.",
            )
        if (found := self._of_tenants.get(mark)) is None:
            found = self._of_tenants[mark] = saver.for_mark(mark)
        return found

    def _default(self) -> DaprSaver:
        if self._ours is None:
            # Threads of this runner only: another one's thread of the same id is another thread.
            prefix = f"checkpoints/{safe_name(self._runner)[:32]}-{digest(self._runner)}"
            self._ours = DaprSaver(self._store, key_prefix=prefix)
        return self._ours
