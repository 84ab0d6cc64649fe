"""A graph's run as a live loop, parked at the plan of a superstep.

``Pregel.stream``'s own code is run, with a private copy of its module's globals in which the names
of the loop, the runner, the queue and the callback manager are ours. The user's graph and
LangGraph's modules stay as they are.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from langgraph.pregel import Pregel

from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._callbacks import managers_for
from dapr_runners.langgraph._parking import (
    ParkedAsyncLoop,
    ParkedSyncLoop,
    Parking,
    ParkingRunner,
    StepResult,
)
from dapr_runners.langgraph._route import RoutedAsyncQueue, RoutedSyncQueue

_STREAM, _ASTREAM = Pregel.stream, Pregel.astream
"""Taken at import: LangGraph's own, whatever a program puts in their place."""
_PARKED = object()
"""What a parked stream yields, in between its chunks."""


def _rebound(function: Any, names: dict[str, Any]) -> Any:
    copy = types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


class Live:
    """One loop: the root graph's, or a subgraph's. ``arguments`` are those of ``Pregel.stream``."""

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        input: Any,
        config: Any,
        arguments: dict[str, Any],
        parking: Parking,
        *,
        is_async: bool,
        nested: bool = False,
    ) -> None:
        self.graph = graph
        self.parking = parking
        self.is_async = is_async
        self.n = -1
        """Number of the plan it is parked at."""
        self.started: set[str] = set()
        """Tasks a step activity has run on this loop."""
        self.is_thawed = False
        """Whether others may have done steps of its plan before it was made."""
        self.results: dict[str, StepResult] = {}
        """By record key, what steps of the plan made in this process."""
        self.users = 0
        self.latest: Any = None
        """The last ``values`` chunk of a subgraph: its result so far."""
        self.parent: Live | None = None
        self.path = ""
        """Names of the nodes around a subgraph, joined by ``/``."""
        self.up_at = ""
        """Record key of the plan that a subgraph's node is in."""
        self.event_loop: asyncio.AbstractEventLoop | None = None
        self._arguments = arguments
        names: dict[str, Any] = {
            "PregelRunner": functools.partial(ParkingRunner, parking=parking),
            "_output": self._output,
        }
        if is_async:
            names["AsyncPregelLoop"] = functools.partial(ParkedAsyncLoop, parking=parking)
            names["AsyncQueue"] = functools.partial(RoutedAsyncQueue, parking, not nested)
            names["get_async_callback_manager_for_config"] = managers_for(
                lg.main.get_async_callback_manager_for_config, parking, is_async=True
            )
            function = _ASTREAM
        else:
            names["SyncPregelLoop"] = functools.partial(ParkedSyncLoop, parking=parking)
            names["SyncQueue"] = functools.partial(RoutedSyncQueue, parking, not nested)
            names["get_callback_manager_for_config"] = managers_for(
                lg.main.get_callback_manager_for_config, parking, is_async=False
            )
            function = _STREAM
        self._stream: Any = _rebound(function, names)(graph, input, config, **arguments)

    @property
    def loop(self) -> Any:
        """LangGraph's loop object; None before the first advance."""
        return self.parking.loop

    def _output(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from lg.output(*args, **kwargs)
        if self.parking.at_plan:
            self.parking.at_plan = False
            yield _PARKED

    def convert(self, item: Any) -> list[Any]:
        """The chunks that ``Pregel.stream`` makes of ``item`` (namespace, mode, payload)."""
        items = [item]
        arguments = self._arguments
        is_v2 = arguments.get("version", "v1") == "v2"
        mode = arguments.get("stream_mode")
        return list(
            lg.output(
                self.graph.stream_mode if mode is None else mode,
                arguments.get("print_mode", ()),
                arguments.get("subgraphs", False),
                items.pop,
                IndexError,
                "v2" if is_v2 else "v1",
                self.graph._output_mapper if is_v2 else None,
                self.graph._state_mapper if is_v2 else None,
            )
        )

    def advance(self, emit: Callable[[Any], None]) -> bool:
        """Go on to the next plan (True) or the end (False). Chunks go to ``emit``; what the graph
        raises is raised."""
        for chunk in self._stream:
            if chunk is _PARKED:
                self._parked()
                return True
            emit(chunk)
        return False

    async def advance_async(self, emit: Callable[[Any], None]) -> bool:
        """Twin of :meth:`advance`."""
        async for chunk in self._stream:
            if chunk is _PARKED:
                self._parked()
                return True
            emit(chunk)
        return False

    def _parked(self) -> None:
        self.n += 1
        self.started.clear()
        self.is_thawed = False
        self.results.clear()
        self.parking.results = None
        self.parking.timed_out = False

    def leave(self) -> None:
        """Drop the parked loop. Nothing is persisted or reported for it."""
        self.parking.leaving = True
        with contextlib.suppress(StopIteration, GeneratorExit):
            self._stream.close()

    async def leave_async(self) -> None:
        """Twin of :meth:`leave`."""
        self.parking.leaving = True
        with contextlib.suppress(StopAsyncIteration, GeneratorExit):
            await self._stream.aclose()
