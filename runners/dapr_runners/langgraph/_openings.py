"""Live loops: begun, thawed from a record, or found parked."""

import asyncio
import copy
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from dapr_runners.engine import IO, Work, record_key
from dapr_runners.langgraph._book import Book
from dapr_runners.langgraph._lanes import split_lane
from dapr_runners.langgraph._live import Live
from dapr_runners.langgraph._lives import Lives
from dapr_runners.langgraph._names import step_name
from dapr_runners.langgraph._outlets import bound
from dapr_runners.langgraph._parking import Parking
from dapr_runners.langgraph._route import Route, routed
from dapr_runners.langgraph._scope import Scope
from dapr_runners.langgraph._step import enter_subgraph, enter_subgraph_async, subgraph_of
from dapr_runners.langgraph.errors import GraphChangedError
from dapr_runners.state import CorruptRecordError

_NESTED_ARGUMENTS = {"stream_mode": ["updates", "values"]}
"""What ``Pregel.invoke`` streams, which is how a node calls its subgraph."""


class Openings:
    """Opens the loops of one runner's runs."""

    def __init__(self, runner: str, lives: Lives, book: Book) -> None:
        self._runner = runner
        self._lives = lives
        self._book = book

    def root(self, scope: Scope, work: Work, parking: Parking, input: Any) -> Live:
        """A loop of the root graph, to begin with ``input`` or from a snapshot."""
        parking.ending = scope.extras.ending
        is_async = work.item["mode"] == "async"
        parking.record_call = scope.record_call(is_async)
        graph = scope.graph
        if scope.outbox is not None:
            graph = copy.copy(graph)
            graph.checkpointer = scope.outbox.toward(lambda: parking.route)
        config = bound(scope.config(), lambda: parking.route)
        live = Live(graph, input, config, scope.arguments(), parking, is_async=is_async)
        live.event_loop = asyncio.get_running_loop() if is_async else None
        return live

    def nested(
        self, scope: Scope, work: Work, parent: Live, captured: Any, parking: Parking, node: str
    ) -> Live:
        """A loop of the subgraph that ``node`` of ``parent`` is, called as ``captured`` says."""
        path = step_name(parent.path, node)
        graph = subgraph_of(parent.graph, node)
        if graph is None:
            raise GraphChangedError(run_id=scope.run, runner=self._runner, node=path)
        parking.record_call = scope.record_call(parent.is_async)
        live = Live(
            graph,
            captured.input,
            bound(captured.config, lambda: parking.route),
            {**_NESTED_ARGUMENTS, "output_keys": graph.output_channels},
            parking,
            is_async=parent.is_async,
            nested=True,
        )
        live.event_loop = parent.event_loop
        live.path = path
        live.parent = parent
        return live

    async def enter(self, parent: Live, task_id: str) -> Any:
        """What the subgraph of a task planned in ``parent`` is called with."""
        if parent.is_async:
            return await enter_subgraph_async(parent, task_id)
        return enter_subgraph(parent, task_id)

    async def parent(self, work: Work, scope: Scope, io: IO) -> tuple[Live, str]:
        """The loop around the item's lane, to be given back, and the subgraph's node in it."""
        around, n, task_id = split_lane(work.lane)
        parent = await self.shared(work, scope, io, around, n, work.item["at"], f"{task_id}/begin")
        return parent, parent.loop.tasks[task_id].name

    async def shared(
        self, work: Work, scope: Scope, io: IO, lane: str, n: int, at: str, use: str | None = None
    ) -> Live:
        """The loop of ``lane`` at plan ``n``, shared with other steps of the plan: to be given back
        with ``Lives.unshare``."""
        task: str = use or work.item["task"]
        while True:
            live = self._lives.share(work.run, lane, n, task)
            if live is not None:
                try:
                    if "of" not in work.item:  # an error handler is planned once its node failed
                        self.require(work, live, [task.partition("/")[0]])
                except GraphChangedError:
                    self._lives.unshare(live)
                    raise
                return live
            self._lives.keep(work.run, lane, await self.thawed(work, scope, io, lane, n, at))

    async def thawed(self, work: Work, scope: Scope, io: IO, lane: str, n: int, at: str) -> Live:
        """A loop thawed from the record ``at``, parked at plan ``n``."""
        record = await self._book.record(work.run, at, io)
        body = record.body
        reader = await scope.reader(body["artifacts"], scope.is_async)
        parking = Parking(
            work.run,
            frozen=(body["loop"], reader),
            run_id=_uuid(body["run_id"]),
            recall=scope.recall,
        )
        if not lane:
            live = self.root(scope, work, parking, None)
        else:
            around, up_n, task_id = split_lane(lane)
            parent = await self.shared(
                work, scope, io, around, up_n, body["up_at"], f"{task_id}/thaw{n}"
            )
            try:
                with routed(Route(work.run, lambda _: None)):
                    captured = await self.enter(parent, task_id)
                node = parent.loop.tasks[task_id].name
                live = self.nested(scope, work, parent, captured, parking, node)
            finally:
                self._lives.unshare(parent)
            live.latest = reader.get(body["latest"], "the subgraph's values")
            live.up_at = body["up_at"]
        live.n = n - 1
        with routed(Route(work.run, lambda _: None, driven=parking)):
            if not await advance(live, lambda _: None):
                raise CorruptRecordError(key=record_key(work.run, at), reason="it has no plan")
        live.is_thawed = True
        return live

    def require(self, work: Work, live: Live, task_ids: Iterable[str]) -> None:
        """The tasks that the item is about must be among those that this program's graph has now,
        at the plan that was recorded."""
        if not live.loop.tasks.keys() >= set(task_ids):
            raise GraphChangedError(run_id=work.run, runner=self._runner, node=work.step_name)


async def advance(live: Live, emit: Callable[[Any], None]) -> bool:
    """Let ``live`` go on to its next plan (True) or its end (False)."""
    if live.is_async:
        return await live.advance_async(emit)
    return live.advance(emit)


def _uuid(text: str) -> uuid.UUID | None:
    return None if text == "None" else uuid.UUID(text)
