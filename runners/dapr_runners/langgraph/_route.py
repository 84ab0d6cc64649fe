"""Where stream chunks and saver writes go while a step runs.

Several steps may run at once on one parked loop, and LangGraph gives them all the loop's one queue
and the graph's one saver. A context variable, which LangGraph copies into every thread and task it
starts, tells whose a chunk or a write is.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from dapr_runners.effects import Notes
from dapr_runners.langgraph import _private as lg
from dapr_runners.state import UnstorableValueError


@dataclass(eq=False)
class Route:
    """The outlets of one activity of ``run``. ``driven`` is the parking of the loop it drives, if
    it drives one: what goes to that loop's queue takes LangGraph's own way."""

    run: str
    emit: Callable[[Any], None]
    driven: Any = None
    box: list[Any] = field(default_factory=list[Any])
    notes: Notes | None = None
    """The messages of the step that the activity runs, if it runs one."""
    refused: UnstorableValueError | None = None
    """What a @task call returned and could not be stored. It is found in a callback of LangGraph's,
    where an error gets lost."""
    around: "Route | None" = field(default_factory=lambda: current_route.get())
    """That of the step of another run which has called this run."""


current_route: ContextVar[Route | None] = ContextVar("dapr_runners_route", default=None)


@contextmanager
def routed(route: Route | None) -> Generator[None]:
    """Let chunks and saver writes of what runs inside go to ``route``."""
    token = current_route.set(route)
    try:
        yield
    finally:
        current_route.reset(token)


def _take_away(queue: Any, item: Any) -> bool:
    """Hand ``item`` to the running activity, if it is not for the loop it drives."""
    route = current_route.get()
    while route is not None and route.run != queue.parking.run:
        route = route.around  # a handler of the run around this one hears what happens in it
    if route is None or route.driven is queue.parking:
        return False
    # What a subgraph's own queue holds is for its parent's node, which takes the subgraph's
    # result from its loop.
    if queue.is_root:
        route.emit(item)
    return True


class RoutedSyncQueue(lg.SyncQueue):
    """LangGraph's queue, which lets the running activity take its own chunks."""

    def __init__(self, parking: Any, is_root: bool) -> None:
        super().__init__()
        self.parking = parking
        self.is_root = is_root

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if not _take_away(self, item):
            super().put(item, block, timeout)


class RoutedAsyncQueue(lg.AsyncQueue):
    """LangGraph's queue, which lets the running activity take its own chunks."""

    def __init__(self, parking: Any, is_root: bool) -> None:
        super().__init__()
        self.parking = parking
        self.is_root = is_root

    def put_nowait(self, item: Any) -> None:
        if not _take_away(self, item):
            super().put_nowait(item)
