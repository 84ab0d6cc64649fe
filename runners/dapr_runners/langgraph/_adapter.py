"""LangGraph, seen by the engine: begin, fuse, step and commit on live loops."""

import asyncio
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphBubbleUp
from langgraph.pregel import Pregel

from dapr_runners.engine import (
    IO,
    Bus,
    Json,
    LiveChunk,
    LiveLog,
    Produced,
    Record,
    Work,
    record_key,
    spec_key,
    unpack_spec,
)
from dapr_runners.langgraph._live import Live
from dapr_runners.langgraph._lives import Lives, drop
from dapr_runners.langgraph._names import COMMIT, activity_names, step_name
from dapr_runners.langgraph._outbox import OutboxSaver, freeze_box, send_box, send_box_async
from dapr_runners.langgraph._parking import Parking, StepResult
from dapr_runners.langgraph._parts import PartReader, PartWriter
from dapr_runners.langgraph._results import freeze_result, thaw_result
from dapr_runners.langgraph._route import Route, routed
from dapr_runners.langgraph._scope import Scope
from dapr_runners.langgraph._snapshot import freeze, make_handler
from dapr_runners.langgraph._specs import Call, Extras
from dapr_runners.langgraph._step import (
    Step,
    enter_subgraph,
    enter_subgraph_async,
    is_fatal,
    leave_subgraph,
    subgraph_of,
)
from dapr_runners.langgraph.errors import GraphChangedError
from dapr_runners.state import (
    ArtifactCache,
    Codec,
    CorruptRecordError,
    StateStore,
    UnstorableValueError,
)

_SCOPES = 512
_NESTED_ARGUMENTS = {"stream_mode": ["updates", "values"]}
"""What ``Pregel.invoke`` streams, which is how a node calls its subgraph."""

RetryAfter = Callable[[Any, BaseException, int], float | None]
"""(node, error, attempt) -> seconds to wait before the next attempt, or None."""


@dataclass(slots=True)
class Held:
    """What an activity made, until it is recorded."""

    live: Live | None
    """The loop, to be parked for its next plan."""
    parts: PartWriter
    of: Live | None = None
    """The loop whose step this is the result of."""
    result: StepResult | None = None


class GraphAdapter:
    """Runs the items of one graph."""

    def __init__(
        self,
        runner: str,
        graph: Pregel[Any, Any, Any, Any],
        codec: Codec,
        store: StateStore,
        bus: Bus,
        *,
        saver: Callable[[], BaseCheckpointSaver[Any]],
        retry_after: RetryAfter,
        artifact_limit: int,
    ) -> None:
        self._runner = runner
        self._graph = graph
        self._codec = codec
        self._store = store
        self._bus = bus
        self._saver = saver
        self._retry_after = retry_after
        self._artifact_limit = artifact_limit
        self._live_log = LiveLog(store, codec)
        self._artifacts = ArtifactCache()
        self._lives = Lives()
        self._lock = threading.Lock()
        self._scopes: OrderedDict[str, Scope] = OrderedDict()
        self._extras: dict[str, Extras] = {}

    # -- the engine's side

    def activity_names(self) -> Sequence[str]:
        return list(activity_names(self._graph))

    def is_hot(self, work: Work) -> bool:
        if work.op == "begin" or work.attempt > 1:
            return False
        live = self._lives.peek(work.run, work.lane, work.n)
        return live is not None and work.item.get("task") not in live.started

    async def perform(self, work: Work, io: IO) -> Produced:
        scope = await self._scope(work.run, work.item["mode"], io)
        match work.op:
            case "begin" if not work.lane:
                return await self._begin(work, scope)
            case "begin":
                return await self._begin_lane(work, scope, io)
            case "step":
                return await self._step(work, scope, io)
            case "fuse":
                results = None
                if work.injected is not None:
                    results = [StepResult(work.item["task"], [], error=work.injected)]
                return await self._advance(work, scope, io, results)
            case _:
                results = await self._results(work, scope, io)
                return await self._advance(work, scope, io, results)

    async def recorded(self, work: Work, record: Record, produced: Produced | None, io: IO) -> None:
        held: Held | None = None if produced is None else produced.held
        if held is None:
            # Another attempt's record counts: what is live here has gone another way.
            self._lives.forget(work.run, work.lane)
            await self._send(record, work, io)
            return
        scope = await self._scope(work.run, work.item["mode"], io)
        scope.before[work.lane] = held.parts.hashes
        if record.outbox and scope.saver is not None:
            reader = await scope.reader(record.body["artifacts"], scope.is_async)
            await self._send_to(scope.saver, record.outbox, reader, work)
        if held.of is not None and held.result is not None:
            held.of.results[record.key] = held.result
        if held.live is not None and record.outcome["k"] == "plan":
            self._lives.keep(work.run, work.lane, held.live)

    def forget(self, run: str) -> None:
        self._lives.forget(run)
        with self._lock:
            self._scopes.pop(run, None)
            self._extras.pop(run, None)

    # -- scopes

    def lend(self, run: str, extras: Extras) -> None:
        """Give a run what it has in this process only."""
        with self._lock:
            self._extras[run] = extras

    async def _scope(self, run: str, mode: str, io: IO) -> Scope:
        scope = self._scopes.get(run)
        if scope is None:
            data = await io.get(spec_key(run))
            if data is None:
                raise CorruptRecordError(key=spec_key(run), reason="it is gone")
            call = Call.unpack(self._codec, unpack_spec(self._codec, data, run), run)
            scope = self._open(run, call, mode)
            with self._lock:
                self._scopes[run] = scope
                while len(self._scopes) > _SCOPES:
                    self._scopes.popitem(last=False)
        return scope

    def _open(self, run: str, call: Call, mode: str) -> Scope:
        graph, outbox = self._graph, None
        if call.saver:
            own = graph.checkpointer
            outbox = OutboxSaver(own if isinstance(own, BaseCheckpointSaver) else self._saver())
            graph = graph.copy({"checkpointer": outbox})
        return Scope(
            run=run,
            is_async=mode == "async",
            call=call,
            extras=self._extras.get(run) or Extras(),
            graph=graph,
            outbox=outbox,
            codec=self._codec,
            store=self._store,
            cache=self._artifacts,
            artifact_limit=self._artifact_limit,
        )

    # -- ops

    async def _begin(self, work: Work, scope: Scope) -> Produced:
        live = self._root(scope, work, Parking(), scope.call.input)
        return await self._drive(work, scope, live)

    async def _begin_lane(self, work: Work, scope: Scope, io: IO) -> Produced:
        parent, path = await self._parent(work, scope, io)
        try:
            with routed(Route(emit=self._emitter(work, [], live=False))):
                captured = await self._enter(parent, work.item["task"])
            live = self._nested(scope, work, parent, captured, Parking(), path)
            live.up_at = work.item["at"]
            return await self._drive(work, scope, live, io)
        finally:
            self._lives.unshare(parent)

    async def _step(self, work: Work, scope: Scope, io: IO) -> Produced:
        live = await self._shared(work, scope, io, work.lane, work.n, work.item["at"])
        chunks: list[bytes] = []
        route = Route(emit=self._converting(live, scope, work, chunks))
        try:
            failed = await self._failed(work, scope, io)
            if failed is not None:
                make_handler(live.loop, failed.id, _must(failed.error))
            if work.injected is not None:
                result = StepResult(work.item["task"], [], error=work.injected)
            else:
                with routed(route):
                    step = Step(live, work.item["task"])
                    result = await step.run_async() if live.is_async else step.run()
            if failed is not None:
                result.handles, result.handled_error = failed.id, failed.error
            return self._step_produced(work, scope, live, result, chunks, route.box)
        finally:
            self._lives.unshare(live)

    def _step_produced(
        self,
        work: Work,
        scope: Scope,
        live: Live,
        result: StepResult,
        chunks: list[bytes],
        box: list[Any],
        lane: str | None = None,
        n: int | None = None,
    ) -> Produced:
        """The outcome of one planned task of ``live``."""
        lane = work.lane if lane is None else lane
        n = work.n if n is None else n
        task = live.loop.tasks[result.id]
        if (pause := self._pause(live, task, result.error, work)) is not None:
            return self._again(pause, result.id, work)
        outcome: Json = {"k": "step", "lane": lane, "n": n, "id": result.id, "at": work.key}
        if result.error is not None:
            outcome["raised"] = "interrupt" if isinstance(result.error, GraphBubbleUp) else "error"
        handler = self._handler_step(live, task, result, work)
        if handler is not None:
            outcome["more"] = [handler]
        elif is_fatal(result.error):
            outcome["stop"] = True
        parts = scope.writer(f"{lane}{n}:{result.id}")
        body: Json = {"result": freeze_result(result, parts, task.name)}
        produced = self._produced(outcome, body, chunks, box, parts, scope, None)
        produced.held.of, produced.held.result = live, result
        return produced

    async def _advance(
        self, work: Work, scope: Scope, io: IO, results: list[StepResult] | None
    ) -> Produced:
        live = self._lives.take(work.run, work.lane, work.n)
        if live is None:
            live = await self._thawed(work, scope, io, work.lane, work.n, work.item["at"])
        live.parking.results = results
        live.parking.timed_out = bool(work.item.get("timed_out"))
        return await self._drive(work, scope, live, io)

    async def _drive(self, work: Work, scope: Scope, live: Live, io: IO | None = None) -> Produced:
        """Let ``live`` go on to its next plan or its end."""
        chunks: list[bytes] = []
        route = Route(
            emit=self._converting(self_root(live), scope, work, chunks), driven=live.parking
        )
        emit = _keep_latest(live) if work.lane else self._emitter(work, chunks, scope.call.is_live)
        node = self._lone_task(live) if work.op == "fuse" else None
        error: BaseException | None = None
        parked = False
        live.parking.route = route
        with routed(route):
            try:
                parked = await _advance(live, emit)
            except Exception as raised:
                error = raised
        if error is not None and node is not None:
            pause = self._pause(live, node, error, work)
            if pause is not None:
                return self._again(pause, node.id, work)
        if parked:
            return self._plan(work, scope, live, chunks, route.box)
        if work.lane:
            assert io is not None
            return await self._leave_lane(work, scope, live, error, chunks, route.box, io)
        return self._ended(work, scope, live, error, chunks, route.box)

    # -- outcomes

    def _plan(
        self, work: Work, scope: Scope, live: Live, chunks: list[bytes], box: list[Any]
    ) -> Produced:
        loop, plan = live.loop, live.parking.plan or []
        steps = [self._planned_step(live, task, len(plan) == 1) for task in plan]
        outcome: Json = {
            "k": "plan",
            "lane": work.lane,
            "at": work.key,
            "n": live.n,
            "steps": steps,
            "commit": step_name(live.path, COMMIT),
        }
        if (window := loop.config.get("max_concurrency")) is not None:
            outcome["window"] = window
        if live.graph.step_timeout is not None:
            outcome["timeout"] = live.graph.step_timeout
        parts = scope.writer(work.lane)
        try:
            body: Json = {
                "loop": freeze(loop, parts),
                "run_id": str(live.parking.run_id),
                "step": loop.step,
            }
            if work.lane:
                body["latest"] = parts.put(live.latest, "the subgraph's values")
                body["up_at"] = live.up_at
            return self._produced(outcome, body, chunks, box, parts, scope, live)
        except UnstorableValueError as error:
            if work.op == "fuse":
                error.where = f"node {work.step_name!r}, {error.where}"
            drop(live)
            return self._ended(work, scope, live, error, chunks, [])

    def _planned_step(self, live: Live, task: Any, lone: bool) -> Json:
        step: Json = {"id": task.id, "name": step_name(live.path, task.name)}
        if self._is_lane(live, task):
            step["loop"] = True
        elif lone and task.name not in (live.graph.node_error_handler_map or {}):
            step["fuse"] = True
        return step

    def _is_lane(self, live: Live, task: Any) -> bool:
        return subgraph_of(live.graph, task.name) is not None

    def _ended(
        self,
        work: Work,
        scope: Scope,
        live: Live,
        error: BaseException | None,
        chunks: list[bytes],
        box: list[Any],
    ) -> Produced:
        outcome: Json = {"k": "end", "at": work.key}
        parts = scope.writer(work.lane)
        body: Json = {}
        if error is not None:
            outcome["status"] = "failed"
            body["error"] = self._codec.encode(error, "the error")
        else:
            outcome["status"] = "interrupted" if live.parking.interrupted else "completed"
        if live.loop is not None:
            body["step"] = live.loop.step
        return self._produced(outcome, body, chunks, box, parts, scope, None)

    async def _leave_lane(
        self,
        work: Work,
        scope: Scope,
        live: Live,
        error: BaseException | None,
        chunks: list[bytes],
        box: list[Any],
        io: IO,
    ) -> Produced:
        """A subgraph's loop ended: finish the task of its parent with what it gave."""
        around, n, task_id = split_lane(work.lane)
        parent = await self._shared(work, scope, io, around, n, live.up_at, f"{task_id}/end")
        route = Route(emit=self._converting(self_root(parent), scope, work, chunks), box=box)
        try:
            with routed(route):
                step = leave_subgraph(parent, task_id, live.latest, error)
                result = await step.run_async() if parent.is_async else step.run()
            return self._step_produced(work, scope, parent, result, chunks, box, around, n)
        finally:
            self._lives.unshare(parent)

    def _produced(
        self,
        outcome: Json,
        body: Json,
        chunks: list[bytes],
        box: list[Any],
        parts: PartWriter,
        scope: Scope,
        live: Live | None,
    ) -> Produced:
        outbox = freeze_box(box, parts)
        body["artifacts"] = sorted(parts.used)
        if scope.call.is_live:
            body["live"] = self._live_log.end(scope.run, outcome["at"])
        return Produced(
            outcome,
            body,
            chunks,
            outbox,
            before_record=lambda: scope.store_artifacts(parts, scope.is_async),
            held=Held(live, parts),
        )

    def _again(self, pause: float, task_id: str, work: Work) -> Produced:
        """The step failed and is tried again. What it streamed goes unrecorded, as LangGraph's own
        retries show nothing of a failed attempt."""
        self._live_log.end(work.run, work.key)
        attempt = work.attempt + 1
        return Produced({"k": "retry", "id": task_id, "after": pause, "attempt": attempt})

    def _handler_step(self, live: Live, task: Any, result: StepResult, work: Work) -> Json | None:
        error = result.error
        node = live.loop.nodes.get(task.name)
        if error is None or isinstance(error, GraphBubbleUp) or node is None:
            return None
        if not node.error_handler_node or node.is_error_handler:
            return None
        handler = make_handler(live.loop, task.id, error)
        return {"id": handler.id, "name": step_name(live.path, handler.name), "of": work.key}

    def _pause(
        self, live: Live, task: Any, error: BaseException | None, work: Work
    ) -> float | None:
        if error is None or isinstance(error, GraphBubbleUp) or work.injected is not None:
            return None
        node = live.graph.nodes.get(task.name)
        if node is None or node.retry_policy or live.graph.retry_policy:
            return None  # LangGraph has retried as its own policy says
        return self._retry_after(node, error, work.attempt)

    def _lone_task(self, live: Live) -> Any:
        plan = live.parking.plan
        return plan[0] if plan and len(plan) == 1 else None

    # -- loops

    def _root(self, scope: Scope, work: Work, parking: Parking, input: Any) -> Live:
        is_async = work.item["mode"] == "async"
        parking.record_call = scope.record_call(is_async)
        live = Live(
            scope.graph, input, scope.config(), scope.arguments(), parking, is_async=is_async
        )
        live.event_loop = asyncio.get_running_loop() if is_async else None
        return live

    def _nested(
        self, scope: Scope, work: Work, parent: Live, captured: Any, parking: Parking, path: str
    ) -> Live:
        node = path.rpartition("/")[2]
        graph = subgraph_of(parent.graph, node)
        if graph is None:
            raise GraphChangedError(run_id=scope.run, runner=self._runner, node=path)
        parking.record_call = scope.record_call(parent.is_async)
        live = Live(
            graph,
            captured.input,
            captured.config,
            {**_NESTED_ARGUMENTS, "output_keys": graph.output_channels},
            parking,
            is_async=parent.is_async,
            nested=True,
        )
        live.event_loop = parent.event_loop
        live.path = path
        live.parent = parent
        return live

    async def _enter(self, parent: Live, task_id: str) -> Any:
        if parent.is_async:
            return await enter_subgraph_async(parent, task_id)
        return enter_subgraph(parent, task_id)

    async def _parent(self, work: Work, scope: Scope, io: IO) -> tuple[Live, str]:
        around, n, task_id = split_lane(work.lane)
        parent = await self._shared(work, scope, io, around, n, work.item["at"], f"{task_id}/begin")
        return parent, step_name(parent.path, parent.loop.tasks[task_id].name)

    async def _shared(
        self, work: Work, scope: Scope, io: IO, lane: str, n: int, at: str, use: str | None = None
    ) -> Live:
        """The loop of ``lane`` at plan ``n``, shared with other steps of the plan."""
        use = use or work.item["task"]
        while True:
            live = self._lives.share(work.run, lane, n, use)
            if live is not None:
                return live
            self._lives.keep(work.run, lane, await self._thawed(work, scope, io, lane, n, at))

    async def _thawed(self, work: Work, scope: Scope, io: IO, lane: str, n: int, at: str) -> Live:
        """A loop thawed from the record ``at``, parked at plan ``n``."""
        record = await self._record(work.run, at, io)
        body = record.body
        reader = await scope.reader(body["artifacts"], scope.is_async)
        parking = Parking(
            frozen=(body["loop"], reader), run_id=_uuid(body["run_id"]), recall=scope.recall
        )
        if not lane:
            live = self._root(scope, work, parking, None)
        else:
            around, up_n, task_id = split_lane(lane)
            parent = await self._shared(
                work, scope, io, around, up_n, body["up_at"], f"{task_id}/thaw{n}"
            )
            try:
                path = step_name(parent.path, parent.loop.tasks[task_id].name)
                with routed(Route(emit=lambda _: None)):
                    captured = await self._enter(parent, task_id)
                live = self._nested(scope, work, parent, captured, parking, path)
            finally:
                self._lives.unshare(parent)
            live.latest = reader.get(body["latest"], "the subgraph's values")
            live.up_at = body["up_at"]
        live.n = n - 1
        with routed(Route(emit=lambda _: None, driven=parking)):
            if not await _advance(live, lambda _: None):
                raise CorruptRecordError(key=record_key(work.run, at), reason="it has no plan")
        return live

    # -- records

    async def _record(self, run: str, key: str, io: IO) -> Record:
        at = record_key(run, key)
        data = await io.get(at)
        if data is None:
            raise CorruptRecordError(key=at, reason="it is gone")
        plain: Any = self._codec.decode(data, at)
        return Record.unpack(key, plain)

    async def _results(self, work: Work, scope: Scope, io: IO) -> list[StepResult]:
        """What the steps of a plan made: from memory where they ran here, else from the store."""
        live = self._lives.peek(work.run, work.lane, work.n)
        known = {} if live is None else live.results
        keys = [key for _, key in work.item["done"]]
        wanted = {key: record_key(work.run, key) for key in keys if key not in known}
        found = await io.get_many(list(wanted.values())) if wanted else {}
        results: list[StepResult] = []
        for key in keys:
            if key in known:
                results.append(known[key])
            elif wanted[key] in found:
                at = wanted[key]
                results.append(await self._result(scope, key, at, found[at], io))
            else:
                raise CorruptRecordError(key=wanted[key], reason="it is gone")
        return results

    async def _result(self, scope: Scope, key: str, at: str, data: bytes, io: IO) -> StepResult:
        plain: Any = self._codec.decode(data, at)
        body = Record.unpack(key, plain).body
        return thaw_result(body["result"], await scope.reader(body["artifacts"], scope.is_async))

    async def _failed(self, work: Work, scope: Scope, io: IO) -> StepResult | None:
        key = work.item.get("of")
        if key is None:
            return None
        at = record_key(work.run, key)
        data = await io.get(at)
        if data is None:
            raise CorruptRecordError(key=at, reason="it is gone")
        return await self._result(scope, key, at, data, io)

    async def _send(self, record: Record, work: Work, io: IO) -> None:
        if record.outbox:
            scope = await self._scope(work.run, work.item["mode"], io)
            if scope.saver is not None:
                reader = await scope.reader(record.body["artifacts"], scope.is_async)
                await self._send_to(scope.saver, record.outbox, reader, work)

    async def _send_to(
        self, saver: BaseCheckpointSaver[Any], outbox: list[Any], reader: PartReader, work: Work
    ) -> None:
        if work.item["mode"] == "async":
            await send_box_async(outbox, reader, saver)
        else:
            send_box(outbox, reader, saver)

    # -- chunks

    def _emitter(self, work: Work, chunks: list[bytes], live: bool) -> Callable[[Any], None]:
        """For chunks of an activity: kept for its record, and told at once if ``live``: in this
        process to who listens, else to callers in other processes."""
        key, run, lock = work.key, work.run, threading.Lock()

        def emit(chunk: Any) -> None:
            data = self._codec.encode(chunk, "a stream chunk")
            with lock:
                chunks.append(data)
                if not live:
                    return  # its record follows at once, and a wake-up less is a wake-up less
                if self._bus.wanted(run):
                    self._bus.publish(run, LiveChunk(key, len(chunks) - 1, data))
                else:
                    self._live_log.write(run, key, len(chunks) - 1, data)

        return emit

    def _converting(
        self, live: Live, scope: Scope, work: Work, chunks: list[bytes]
    ) -> Callable[[Any], None]:
        """For raw items that reach the root's queue from inside a step."""
        emit = self._emitter(work, chunks, scope.call.is_live)

        def convert(item: Any) -> None:
            for chunk in self_root(live).convert(item):
                emit(chunk)

        return convert


def self_root(live: Live) -> Live:
    """The root graph's loop around ``live``."""
    while live.parent is not None:
        live = live.parent
    return live


def split_lane(lane: str) -> tuple[str, int, str]:
    """``(lane around it, number of the plan, task id)`` of a subgraph's lane."""
    head, _, last = lane[:-1].rpartition("/")
    n, _, task = last.partition(":")
    return (f"{head}/" if head else ""), int(n), task


def _keep_latest(live: Live) -> Callable[[Any], None]:
    def keep(chunk: Any) -> None:
        if chunk[-2] == "values":
            live.latest = chunk[-1]

    return keep


async def _advance(live: Live, emit: Callable[[Any], None]) -> bool:
    if live.is_async:
        return await live.advance_async(emit)
    return live.advance(emit)


def _must(error: BaseException | None) -> BaseException:
    assert error is not None
    return error


def _uuid(text: str) -> Any:
    return None if text == "None" else uuid.UUID(text)
