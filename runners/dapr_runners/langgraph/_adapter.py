"""LangGraph, seen by the engine: begin, fuse, step and commit on live loops."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from dapr_runners._current_step import CurrentStep, running
from dapr_runners.effects import EffectHost
from dapr_runners.engine import (
    AGAIN,
    IO,
    BreaksRun,
    Bus,
    Halt,
    LiveLog,
    Produced,
    Record,
    Work,
    digest,
    resolved_key,
)
from dapr_runners.langgraph._answers import record_answers
from dapr_runners.langgraph._book import Book
from dapr_runners.langgraph._chunks import Chunks
from dapr_runners.langgraph._faults import StoreFault, is_exit
from dapr_runners.langgraph._here import Here
from dapr_runners.langgraph._lanes import root_of, split_lane
from dapr_runners.langgraph._live import Live
from dapr_runners.langgraph._lives import Lives, drop
from dapr_runners.langgraph._messages import notes_of, with_messages
from dapr_runners.langgraph._models import watch_models
from dapr_runners.langgraph._names import activity_names
from dapr_runners.langgraph._openings import Openings, advance
from dapr_runners.langgraph._outbox import send_box, send_box_async
from dapr_runners.langgraph._outcomes import Held, Outcomes, RetryAfter
from dapr_runners.langgraph._parking import Parking, StepResult
from dapr_runners.langgraph._parts import PartReader
from dapr_runners.langgraph._place import place
from dapr_runners.langgraph._route import Route, routed
from dapr_runners.langgraph._scope import Scope
from dapr_runners.langgraph._scopes import Scopes
from dapr_runners.langgraph._snapshot import freeze_writes, make_handler
from dapr_runners.langgraph._specs import Extras
from dapr_runners.langgraph._step import Step, leave_subgraph, resolved_task
from dapr_runners.state import (
    Codec,
    EncryptionError,
    SidecarUnreachableError,
    StateStore,
    StateStoreError,
    UnstorableValueError,
)


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
        saver: Callable[[str], BaseCheckpointSaver[Any]],
        retry_after: RetryAfter,
        artifact_limit: int,
        live_log: LiveLog,
        on_saver_error: Literal["raise", "retry"] = "raise",
        records_answers: bool = True,
    ) -> None:
        self._graph = graph
        self._codec = codec
        self._on_saver_error = on_saver_error
        self._here = Here()
        self._lives = Lives()
        self._book = Book(codec)
        self._scopes = Scopes(graph, codec, store, saver, artifact_limit)
        self._openings = Openings(runner, self._lives, self._book)
        self._outcomes = Outcomes(codec, live_log, retry_after)
        self._chunks = Chunks(codec, bus, live_log)
        version = digest(*activity_names(graph))
        self._effects = EffectHost(store, codec, version, place, records_answers)

    # -- the engine's side

    def activity_names(self) -> Sequence[str]:
        return list(activity_names(self._graph))

    def is_hot(self, work: Work) -> bool:
        if work.attempt > 1:
            return False
        if work.op == "begin":
            return not work.lane and self._scopes.is_new(work.run)
        live = self._lives.peek(work.run, work.lane, work.n)
        if live is None or live.is_thawed:
            return False
        return work.item.get("task") not in live.started

    async def perform(self, work: Work, io: IO) -> Produced:
        scope = await self._scopes.get(work.run, work.item["mode"], io)
        watch = work.watch
        try:
            return await self._here.run(
                work,
                lambda: (
                    self._perform(work, scope, io)
                    if watch is None
                    else watch.within_run(lambda: self._perform(work, scope, io))
                ),
                scope.extras.context,
                is_async=scope.is_async,
            )
        except StoreFault as fault:
            raise fault.error from None

    async def _perform(self, work: Work, scope: Scope, io: IO) -> Produced:
        match work.op:
            case "begin" | "commit" if work.injected is not None:
                return self._outcomes.given_up(work, scope, work.injected)
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
                if scope.is_async:
                    await self._here.cancel_steps(work.run, work.lane, work.n)
                results = await self._results(work, scope, io)
                return await self._advance(work, scope, io, results)

    async def recorded(self, work: Work, record: Record, produced: Produced | None, io: IO) -> None:
        held: Held | None = None if produced is None else produced.held
        if held is None:
            # Another attempt's record counts: what is live here has gone another way.
            self._lives.forget(work.run, work.lane)
            await self._send(record, work, io)
            return
        scope = await self._scopes.get(work.run, work.item["mode"], io)
        scope.before[work.lane] = held.parts.hashes
        if record.outbox and scope.saver is not None:
            reader = await scope.reader(record.body["artifacts"], scope.is_async)
            await self._send_to(scope.saver, record.outbox, reader, work)
        if held.of is not None and held.result is not None:
            held.of.results[record.key] = held.result
        if held.live is not None and record.outcome["k"] == "plan":
            self._lives.keep(work.run, work.lane, held.live)

    def forget(self, run: str) -> None:
        self._here.cancel(run)
        self._lives.forget(run)
        self._scopes.forget(run)

    async def ended_here(self, run: str) -> None:
        """Wait until nothing of ``run``, which was cancelled, goes on in this process."""
        await self._here.ended(run)

    def lend(self, run: str, extras: Extras) -> None:
        """Give a run what it has in this process only."""
        self._scopes.lend(run, extras)

    # -- ops

    async def _begin(self, work: Work, scope: Scope) -> Produced:
        live = self._openings.root(scope, work, Parking(work.run), scope.call.input)
        return await self._drive(work, scope, live)

    async def _begin_lane(self, work: Work, scope: Scope, io: IO) -> Produced:
        parent, node = await self._openings.parent(work, scope, io)
        try:
            with routed(Route(work.run, self._chunks.emitter(work, [], live=False))):
                captured = await self._openings.enter(parent, work.item["task"])
            live = self._openings.nested(scope, work, parent, captured, Parking(work.run), node)
            live.up_at = work.item["at"]
            return await self._drive(work, scope, live, io)
        finally:
            self._lives.unshare(parent)

    async def _step(self, work: Work, scope: Scope, io: IO) -> Produced:
        live = await self._openings.shared(work, scope, io, work.lane, work.n, work.item["at"])
        chunks: list[bytes] = []
        current = self._step_of(work, scope)
        notes = notes_of(current)
        route = Route(work.run, self._chunks.converting(live, scope, work, chunks), notes=notes)
        try:
            failed = await self._book.failed(work, scope, io)
            if failed is not None:
                make_handler(live.loop, failed.id, _must(failed.error))
            if work.injected is not None:
                result = StepResult(work.item["task"], [], error=work.injected)
            else:
                task = await self._resolved(work, live, io)
                with routed(route), running(current):
                    step = Step(live, work.item["task"], task)
                    result = await step.run_async() if live.is_async else step.run()
                    work.error = result.error
            if route.refused is not None:
                result = StepResult(work.item["task"], [], error=route.refused)
            if failed is not None:
                result.handles, result.handled_error = failed.id, failed.error
            produced = self._outcomes.step(work, scope, live, result, chunks, route.box)
            return with_messages(produced, route)
        finally:
            self._lives.unshare(live)

    async def _results(self, work: Work, scope: Scope, io: IO) -> list[StepResult]:
        live = self._lives.peek(work.run, work.lane, work.n)
        return await self._book.results(work, scope, io, {} if live is None else live.results)

    async def _advance(
        self, work: Work, scope: Scope, io: IO, results: list[StepResult] | None
    ) -> Produced:
        live = self._lives.take(work.run, work.lane, work.n)
        if live is None:
            live = await self._openings.thawed(work, scope, io, work.lane, work.n, work.item["at"])
            planned = [work.item["task"]] if work.op == "fuse" else _planned(results or [])
            self._openings.require(work, live, planned)
        live.parking.results = results
        live.parking.timed_out = bool(work.item.get("timed_out"))
        if work.op == "fuse" and (task := await self._resolved(work, live, io)) is not None:
            live.parking.instead = {task.id: task}
        return await self._drive(work, scope, live, io)

    async def _drive(self, work: Work, scope: Scope, live: Live, io: IO | None = None) -> Produced:
        """Let ``live`` go on to its next plan or its end."""
        chunks: list[bytes] = []
        converting = self._chunks.converting(root_of(live), scope, work, chunks)
        current = self._step_of(work, scope)
        route = Route(work.run, converting, driven=live.parking, notes=notes_of(current))
        emit = (
            _keep_latest(live) if work.lane else self._chunks.emitter(work, chunks, scope.is_live)
        )
        node = _lone_task(live) if work.op == "fuse" else None
        error: BaseException | None = None
        parked = False
        live.parking.route = route
        with routed(route), running(current):
            try:
                parked = await advance(live, emit)
            except Halt:
                drop(live)
                raise
            except UnstorableValueError as raised:
                error = _of_its_node(raised, node, scope)
            except BaseException as raised:
                if not isinstance(raised, Exception) and not is_exit(raised):
                    raise
                error = raised
        if live.is_async:
            # A subgraph hands its chunks to the event loop: let them arrive before it is said that
            # no more do.
            await asyncio.sleep(0)
        if route.refused is not None:
            error = route.refused
            if parked:
                parked = False
                drop(live)
        work.error = error
        if error is not None and node is not None:
            pause = self._outcomes.pause(live, node, error, work)
            if pause is not None:
                return self._outcomes.again(pause, node.id, work)
        if parked:
            return with_messages(
                self._outcomes.plan(work, scope, live, chunks, route.box), route, must_plan=True
            )
        if work.lane:
            assert io is not None
            produced = await self._leave_lane(work, scope, live, error, chunks, route.box, io)
        else:
            produced = self._outcomes.ended(work, scope, live, error, chunks, route.box)
        produced.gave_up = node is not None and self._outcomes.gave_up(live, node, error)
        return with_messages(produced, route, error)

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
        parent = await self._openings.shared(
            work, scope, io, around, n, live.up_at, f"{task_id}/end"
        )
        emit = self._chunks.converting(root_of(parent), scope, work, chunks)
        route = Route(work.run, emit, box=box)
        try:
            with routed(route):
                step = leave_subgraph(parent, task_id, live.latest, error)
                result = await step.run_async() if parent.is_async else step.run()
            return self._outcomes.step(work, scope, parent, result, chunks, box, around, n)
        finally:
            self._lives.unshare(parent)

    async def _resolved(self, work: Work, live: Live, io: IO) -> Any:
        """The task of the item, giving what somebody has said that it gives, if they have."""
        if AGAIN not in work.item:
            return None
        key = resolved_key(work.run, f"{work.lane}{work.n}:{work.item['task']}")
        data = await io.get(key)
        if data is None:
            return None
        return resolved_task(live, work.item["task"], self._codec.decode(data, key))

    def _step_of(self, work: Work, scope: Scope) -> CurrentStep | None:
        """The step whose node runs in an activity, if one does."""
        if work.op not in ("fuse", "step"):
            return None
        if self._effects.records_answers:
            record_answers()
        key = f"{work.lane}{work.n}:{work.item['task']}"
        watched = None
        if work.watch is not None and work.injected is None:
            watch_models()
            watched = work.watch.begin(work.item["task"], key, work.step_name)
        return self._effects.step(
            work.run,
            key,
            work.attempt - 1 + work.begun,
            name=work.step_name,
            tenant=scope.tenant_id,
            order=(work.item.get(AGAIN, 0), work.attempt),
            watched=watched,
        )

    async def _send(self, record: Record, work: Work, io: IO) -> None:
        if record.outbox:
            scope = await self._scopes.get(work.run, work.item["mode"], io)
            if scope.saver is not None:
                reader = await scope.reader(record.body["artifacts"], scope.is_async)
                await self._send_to(scope.saver, record.outbox, reader, work)

    async def _send_to(
        self, saver: BaseCheckpointSaver[Any], outbox: list[Any], reader: PartReader, work: Work
    ) -> None:
        try:
            if work.item["mode"] == "async":
                await send_box_async(outbox, reader, saver)
            else:
                send_box(outbox, reader, saver)
        except (EncryptionError, SidecarUnreachableError, StateStoreError):
            raise  # to be sent again, as long as it takes
        except Exception as error:
            if self._on_saver_error == "retry":
                raise
            raise BreaksRun(error) from error


def _keep_latest(live: Live) -> Callable[[Any], None]:
    def keep(chunk: Any) -> None:
        if chunk[-2] == "values":
            live.latest = chunk[-1]

    return keep


def _lone_task(live: Live) -> Any:
    plan = live.parking.plan
    return plan[0] if plan and len(plan) == 1 else None


def _of_its_node(error: UnstorableValueError, task: Any, scope: Scope) -> UnstorableValueError:
    """What cannot be stored was found in a stream chunk: say which node wrote it to which key."""
    if task is not None:
        try:
            freeze_writes(task.writes, scope.writer(""), f"node {task.name!r}")
        except UnstorableValueError as named:
            return named
    return error


def _planned(results: list[StepResult]) -> list[str]:
    """Ids of the tasks that the graph planned; error handlers are planned by us."""
    return [result.id for result in results if result.handles is None]


def _must(error: BaseException | None) -> BaseException:
    assert error is not None
    return error
