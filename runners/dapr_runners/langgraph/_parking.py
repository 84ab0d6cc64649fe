"""LangGraph's own loop and runner, made to stop at each plan.

``Pregel.stream`` is run with these classes in place of its own (see ``_live``). The loop parks in
the runner's ``tick``, when a superstep is planned; from there it goes on by running the superstep
itself, or by applying results that other activities recorded.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from dapr_runners._current_step import running_step
from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._ending import Ending
from dapr_runners.langgraph._message_ids import give_message_ids
from dapr_runners.langgraph._outlets import as_step
from dapr_runners.langgraph._pending import saved_already
from dapr_runners.langgraph._route import Route, routed
from dapr_runners.langgraph._snapshot import make_handler, thaw, thaw_writes

_INLINE = "__start__"
"""The task of START has no body of the user's but routers: it runs with the plan."""


@dataclass
class StepResult:
    """What a step activity recorded."""

    id: str
    writes: list[tuple[str, Any]]
    error: BaseException | None = None
    handles: str | None = None
    """Id of the failed task, when this was its error handler."""
    handled_error: BaseException | None = None
    visited: list[str] = field(default_factory=list[str])
    """Namespaces whose replay this step began (time travel)."""
    pushed: dict[str, list[tuple[str, Any]]] = field(
        default_factory=dict[str, list[tuple[str, Any]]]
    )
    """Writes of the @task calls the step made."""
    saved: bool = False
    """Whether the saver got the writes with the step itself."""


@dataclass
class Parking:
    """The controls of one parked loop of ``run``."""

    run: str
    frozen: tuple[Any, Any] | None = None
    """A snapshot (see ``_snapshot``) to begin from."""
    run_id: Any = None
    """LangChain run id of the root run, kept over processes so that tracers see one run."""
    ending: Ending | None = None
    """Where the last callbacks of the root graph may be left for its caller."""
    recall: Callable[[str], list[tuple[str, Any]] | None] | None = None
    """Recorded writes of a @task call, by task id."""
    record_call: Callable[[str, str, list[tuple[str, Any]]], None] | None = None
    """Records what a @task call wrote: its task id and name."""
    loop: Any = None
    route: Route | None = None
    """Outlets of the activity that drives the loop right now."""
    plan: list[Any] | None = None
    at_plan: bool = False
    results: list[StepResult] | None = None
    timed_out: bool = False
    leaving: bool = False
    """The loop is being dropped: nothing is to be persisted or reported for that."""
    interrupted: bool = False
    """The root graph stopped at an interrupt."""
    saves: list[Any] = field(default_factory=list[Any])
    instead: dict[str, Any] = field(default_factory=dict[str, Any])
    """Tasks to run instead of planned ones, by their ids."""


class _Saves:
    """Runs what the loop submits. Saver calls only fill an outbox, so they run at once: in order,
    and without a thread each."""

    def __init__(self, submit: Callable[..., Any], parking: Parking, is_async: bool) -> None:
        self._submit = submit
        self._parking = parking
        self._is_async = is_async

    def submit(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        name = getattr(fn, "__name__", "")
        if name not in ("put_writes", "aput_writes", "_checkpointer_put_after_previous"):
            return self._submit(fn, *args, **kwargs)
        if self._is_async:
            task = self._submit(fn, *args, **kwargs)
            self._parking.saves.append(task)
            return task
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        done.set_result(fn(*args, **kwargs))
        return done


class _ParkedLoop:
    """What the synchronous and the asynchronous loop share."""

    parking: Parking

    def _thaw_tick(self: Any) -> bool:
        (frozen, parts), self._thawed = self._thawed, None
        self._skip_cache = True
        self.tasks = lg.prepare_next_tasks(
            self.checkpoint,
            self.checkpoint_pending_writes,
            self.nodes,
            self.channels,
            self.managed,
            self.config,
            self.step,
            self.stop,
            for_execution=True,
            manager=self.manager,
            store=self.store,
            checkpointer=self.checkpointer,
            trigger_to_nodes=self.trigger_to_nodes,
            updated_channels=self.updated_channels,
            retry_policy=self.retry_policy,
            cache_policy=self.cache_policy,
        )
        for failed, ref in frozen.get("handlers", ()):
            make_handler(self, failed, parts.get(ref, "an error"))
        for task_id, writes in frozen.get("task_writes", {}).items():
            if task_id in self.tasks:
                self.tasks[task_id].writes.extend(thaw_writes(writes, parts))
        return True

    def tick(self: Any) -> bool:
        if getattr(self, "_thawed", None) is not None:
            return self._thaw_tick()
        self._skip_cache = False
        return super().tick()  # type: ignore[misc]

    def _is_decided(self: Any) -> bool:
        """Whether a thawed plan has decided already what comes from the cache. Asked once: the
        calls its tasks make then have not been decided on."""
        decided, self._skip_cache = self._skip_cache, False
        return decided

    def put_writes(self: Any, task_id: str, writes: Any, *, cached: bool = False) -> None:
        parking = self.parking
        give_message_ids(self.specs, writes)
        if (
            parking.record_call is not None
            and writes
            and not cached
            and parking.plan is not None
            and not any(channel == lg.ERROR for channel, _ in writes)
            and (task := getattr(self, "tasks", {}).get(task_id)) is not None
            and is_call(task)
        ):
            parking.record_call(task_id, task.name, list(writes))
        super().put_writes(task_id, writes, cached=cached)  # type: ignore[misc]

    def _remember_call(self: Any, pushed: Any) -> Any:
        """Give a @task call that is recorded its recorded writes, instead of running it again."""
        recall = self.parking.recall
        if pushed is not None and not pushed.writes and recall is not None:
            writes = recall(pushed.id)
            if writes is not None:
                pushed.writes.extend(writes)
        return pushed

    def _suppress_interrupt(
        self: Any, exc_type: Any, exc_value: Any, traceback: Any
    ) -> bool | None:
        if self.parking.leaving:
            return None
        self.parking.interrupted = isinstance(exc_value, GraphInterrupt)
        return super()._suppress_interrupt(exc_type, exc_value, traceback)  # type: ignore[misc]

    @property
    def submit(self) -> Any:
        # A bound method: the runner keeps a WeakMethod of it.
        return self._submitter.submit

    @submit.setter
    def submit(self: Any, submit: Any) -> None:
        self._submitter = _Saves(submit, self.parking, isinstance(self, lg.AsyncPregelLoop))


class ParkedSyncLoop(_ParkedLoop, lg.SyncPregelLoop):
    """LangGraph's synchronous loop, which can begin from a snapshot."""

    def __init__(self, *args: Any, parking: Parking, **kwargs: Any) -> None:
        self.parking = parking
        super().__init__(*args, **kwargs)
        parking.loop = self

    def __enter__(self) -> Any:
        if self.parking.frozen is None:
            return super().__enter__()
        thaw(self, *self.parking.frozen)
        self.submit = self.stack.enter_context(lg.BackgroundExecutor(self.config))
        self.stack.push(self._suppress_interrupt)
        return self

    def match_cached_writes(self) -> Any:
        return () if self._is_decided() else super().match_cached_writes()

    def accept_push(self, task: Any, write_idx: int, call: Any = None) -> Any:
        return self._remember_call(super().accept_push(task, write_idx, call))


class ParkedAsyncLoop(_ParkedLoop, lg.AsyncPregelLoop):
    """LangGraph's asynchronous loop, which can begin from a snapshot."""

    def __init__(self, *args: Any, parking: Parking, **kwargs: Any) -> None:
        self.parking = parking
        super().__init__(*args, **kwargs)
        parking.loop = self

    async def __aenter__(self) -> Any:
        if self.parking.frozen is None:
            return await super().__aenter__()
        thaw(self, *self.parking.frozen)
        self.submit = await self.stack.enter_async_context(lg.AsyncBackgroundExecutor(self.config))
        self.stack.push(self._suppress_interrupt)
        return self

    async def amatch_cached_writes(self) -> Any:
        return () if self._is_decided() else await super().amatch_cached_writes()

    async def aaccept_push(self, task: Any, write_idx: int, call: Any = None) -> Any:
        return self._remember_call(await super().aaccept_push(task, write_idx, call))


def _as_step(
    planned: tuple[Any, ...], kwargs: dict[str, Any], *, is_async: bool = False
) -> list[tuple[Any, ...]]:
    """The lone task that is run in the middle of its loop, and what it pushes, as the step that
    runs; arguments for the runner's tick."""
    step = running_step.get()
    if step is None:
        return [planned]
    push = kwargs["schedule_task"]

    def pushed(task: Any, write_idx: int, call: Any = None) -> Any:
        return as_step(push(task, write_idx, call), step, is_part=True)

    async def pushed_async(task: Any, write_idx: int, call: Any = None) -> Any:
        return as_step(await push(task, write_idx, call), step, is_part=True)

    kwargs["schedule_task"] = pushed_async if is_async else pushed
    return [tuple(as_step(task, step) for task in planned)]


class ParkingRunner(lg.PregelRunner):
    """LangGraph's runner, which parks where a superstep is planned."""

    def __init__(self, *args: Any, parking: Parking, **kwargs: Any) -> None:
        self.parking = parking
        super().__init__(*args, **kwargs)

    def commit(self, task: Any, exception: BaseException | None) -> None:
        # Called back from a thread or the loop, outside the context of the activity.
        with routed(self.parking.route):
            super().commit(task, exception)

    def _instead(self, planned: tuple[Any, ...]) -> tuple[Any, ...]:
        instead, self.parking.instead = self.parking.instead, {}
        return tuple(instead.get(task.id, task) for task in planned)

    def tick(self, tasks: Iterable[Any], **kwargs: Any) -> Iterator[None]:
        parking, planned = self.parking, tuple(tasks)
        if all(task.name == _INLINE for task in planned):
            yield from super().tick(planned, **kwargs)
            return
        parking.plan, parking.at_plan = list(planned), True
        yield
        if parking.results is None:
            yield from super().tick(*_as_step(self._instead(planned), kwargs), **kwargs)
            return
        done, handled = self._apply(parking.results)
        yield
        self._finish(done, handled, TimeoutError)

    async def atick(self, tasks: Iterable[Any], **kwargs: Any) -> AsyncIterator[None]:
        parking, planned = self.parking, tuple(tasks)
        if all(task.name == _INLINE for task in planned):
            async for _ in super().atick(planned, **kwargs):
                yield
            return
        await self._settle_saves()
        parking.plan, parking.at_plan = list(planned), True
        yield
        if parking.results is None:
            planned = self._instead(planned)
            async for _ in super().atick(*_as_step(planned, kwargs, is_async=True), **kwargs):
                yield
            return
        done, handled = self._apply(parking.results)
        yield
        self._finish(done, handled, asyncio.TimeoutError)

    async def _settle_saves(self) -> None:
        saves, self.parking.saves = self.parking.saves, []
        if saves:
            await asyncio.gather(*saves)

    def _apply(self, results: list[StepResult]) -> tuple[set[Any], set[Any]]:
        """Commit recorded results, in the order in which they were completed."""
        loop = self.parking.loop
        done: set[Any] = set()
        handled: set[Any] = set()
        # The activities that made them have streamed their chunks and told that they finished.
        stream, loop.stream = loop.stream, None
        finished, self.node_finished = self.node_finished, None
        try:
            for result in results:
                self._apply_one(loop, result, done, handled)
        finally:
            loop.stream, self.node_finished = stream, finished
        return done, handled

    def _apply_one(self, loop: Any, result: StepResult, done: set[Any], handled: set[Any]) -> None:
        if result.handles is not None and result.handled_error is not None:
            make_handler(loop, result.handles, result.handled_error)
        task = loop.tasks[result.id]
        replay = loop.config[lg.CONF].get(lg.CONFIG_KEY_REPLAY_STATE)
        if replay is not None:
            replay._visited_ns.update(result.visited)
        with saved_already(loop, result.saved):
            for call, writes in result.pushed.items():
                lg.PregelLoop.put_writes(loop, call, writes)
            task.writes.clear()
            task.writes.extend(result.writes)
            self.commit(task, result.error)
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        if result.error is None:
            future.set_result(None)
        else:
            routed = self._should_route_to_error_handler(task)
            if routed and not isinstance(result.error, GraphBubbleUp):
                self._handled_exception_ids.add(id(result.error))
                handled.add(future)
            future.set_exception(result.error)
        done.add(future)

    def _finish(self, done: set[Any], handled: set[Any], timeout: type[Exception]) -> None:
        if self.parking.timed_out:
            raise timeout("Timed out")
        lg.panic_or_proceed(
            done,
            timeout_exc_cls=timeout,
            handled_exception_ids=self._handled_exception_ids,
            handled_futures=handled,
        )


def is_call(task: Any) -> bool:
    """Whether ``task`` is a @task call made by a node, and not planned by the graph."""
    return len(task.path) > 2 and task.path[-1] is True
