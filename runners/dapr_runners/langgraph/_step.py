"""Run one planned task on a parked loop, and take what it made instead of committing it."""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import asyncio
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.pregel import Pregel

from dapr_runners._current_step import running_step
from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._faults import is_exit
from dapr_runners.langgraph._live import Live
from dapr_runners.langgraph._message_ids import give_message_ids
from dapr_runners.langgraph._outlets import as_step, bound_task
from dapr_runners.langgraph._parking import StepResult
from dapr_runners.langgraph._pending import save_pending
from dapr_runners.langgraph._route import Route, current_route, routed


class _StepRunner(lg.PregelRunner):
    """LangGraph's runner for one task: its error is kept, its handler is a step of its own."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error: BaseException | None = None
        self.target = ""
        self.route: Route | None = current_route.get()

    def commit(self, task: Any, exception: BaseException | None) -> None:
        if task.id == self.target:
            self.error = exception
        # Called back from a thread or the loop, outside the context of the step.
        with routed(self.route):
            super().commit(task, exception)


class Step:
    """One task of ``live``'s plan. ``task`` replaces the planned one where its body must differ."""

    def __init__(self, live: Live, task_id: str, task: Any = None) -> None:
        self._live = live
        self._loop = live.loop
        self._route = current_route.get()
        self._step = running_step.get()
        planned = task if task is not None else self._loop.tasks[task_id]
        self._task = as_step(bound_task(planned, lambda: self._route), self._step)
        self._pushed: dict[str, list[tuple[str, Any]]] = {}
        self._saved = False
        # PregelRunner holds what it is given by weak reference only.
        self._submit = self._loop.submit
        self._runner = _StepRunner(
            submit=weakref.WeakMethod(self._submit),
            put_writes=weakref.WeakMethod(self._put_writes),
            node_finished=self._loop.config[lg.CONF].get(lg.CONFIG_KEY_NODE_FINISHED),
        )
        self._runner.target = self._task.id

    # -- running

    def run(self) -> StepResult:
        """Run the task, with LangGraph's own retries."""
        try:
            for _ in self._runner.tick([self._task], schedule_task=self._accept_push):
                pass
        except BaseException as error:
            self._raised(error)
        return self._result()

    async def run_async(self) -> StepResult:
        """Twin of :meth:`run`."""
        try:
            async for _ in self._runner.atick([self._task], schedule_task=self._accept_push_async):
                pass
        except BaseException as error:
            self._raised(error)
        # A writer called from a thread hands its chunk to the loop: let it arrive.
        await asyncio.sleep(0)
        return self._result()

    def _raised(self, error: BaseException) -> None:
        """``error`` is raised again, unless it is what the task raised."""
        if is_exit(error) and not isinstance(error, _Captured):
            self._runner.error = error  # nobody commits it
        elif self._runner.error is None or not isinstance(error, Exception):
            raise error

    def _result(self) -> StepResult:
        error = self._runner.error
        writes = list(self._task.writes)
        if error is not None:
            writes = [w for w in writes if w[0] not in (lg.ERROR, lg.ERROR_SOURCE_NODE)]
        replay = self._loop.config[lg.CONF].get(lg.CONFIG_KEY_REPLAY_STATE)
        return StepResult(
            id=self._task.id,
            writes=writes,
            error=error,
            visited=sorted(replay._visited_ns) if replay is not None else [],
            pushed=self._pushed,
            saved=self._saved,
        )

    def _bound(self, task: Any) -> Any:
        """A task that this one pushed: it is recorded for itself."""
        bound = None if task is None else bound_task(task, lambda: self._route)
        return as_step(bound, self._step, is_part=True)

    def _accept_push(self, task: Any, write_idx: int, call: Any = None) -> Any:
        return self._bound(self._loop.accept_push(task, write_idx, call))

    async def _accept_push_async(self, task: Any, write_idx: int, call: Any = None) -> Any:
        return self._bound(await self._loop.aaccept_push(task, write_idx, call))

    def _put_writes(self, task_id: str, writes: Any, *, cached: bool = False) -> None:
        if not writes:
            return
        loop = self._loop
        give_message_ids(loop.specs, writes)
        # An error may have a handler: only the superstep's commit can tell.
        failed = any(channel == lg.ERROR for channel, _ in writes)
        self._saved = not failed and save_pending(loop, task_id, writes)
        if task_id != self._task.id:
            self._pushed[task_id] = list(writes)
            record = self._live.parking.record_call
            if record is not None and not any(channel == lg.ERROR for channel, _ in writes):
                record(task_id, loop.tasks[task_id].name, list(writes))
            loop.checkpoint_pending_writes.extend((task_id, c, v) for c, v in writes)
            self._cache_call(task_id, writes, cached)
        loop.output_writes(task_id, writes, cached=cached)

    def _cache_call(self, task_id: str, writes: Any, cached: bool) -> None:
        loop = self._loop
        task = loop.tasks.get(task_id)
        if task is None or not task.cache_key or loop.cache is None or cached:
            return
        if any(channel in (lg.INTERRUPT, lg.ERROR) for channel, _ in writes):
            return
        put = loop.cache.aset if self._live.is_async else loop.cache.set
        key = (task.cache_key.ns, task.cache_key.key)
        loop.submit(put, {key: (list(task.writes), task.cache_key.ttl)})


# -- subgraphs as lanes of their own


def subgraph_of(graph: Pregel[Any, Any, Any, Any], node: str) -> Pregel[Any, Any, Any, Any] | None:
    """The graph that ``node`` of ``graph`` is, if its steps can be steps of their own.

    A node with a retry policy or a time limit is retried or timed as a whole, so it stays one step.
    """
    spec = graph.nodes.get(node)
    if spec is None or not isinstance(spec.bound, Pregel):
        return None
    if spec.retry_policy or graph.retry_policy or getattr(spec, "timeout", None) is not None:
        return None
    return spec.bound


class _Captured(BaseException):
    """Carries out of a node the input and config that its subgraph is called with."""

    def __init__(self, input: Any, config: Any) -> None:
        super().__init__()
        self.input = input
        self.config = config


def _with_body(live: Live, task_id: str, body: Callable[..., Any], is_async: bool) -> Any:
    """The planned task, with ``body`` in place of its subgraph."""
    task = live.loop.tasks[task_id]
    writers = live.graph.nodes[task.name].flat_writers
    if is_async:
        call = lg.RunnableCallable(None, body, name=task.name, trace=False)
    else:
        call = lg.RunnableCallable(body, name=task.name, trace=False)
    proc = lg.RunnableSeq(call, *writers) if writers else call
    return replace(task, proc=proc)


def enter_subgraph(live: Live, task_id: str) -> _Captured:
    """What the subgraph of a planned task is called with."""

    def body(input: Any, config: RunnableConfig) -> Any:
        raise _Captured(input, config)

    step = Step(live, task_id, _with_body(live, task_id, body, is_async=False))
    try:
        step.run()
    except _Captured as captured:
        return captured
    raise AssertionError("the node did not call its subgraph")


async def enter_subgraph_async(live: Live, task_id: str) -> _Captured:
    """Twin of :func:`enter_subgraph`."""

    async def body(input: Any, config: RunnableConfig) -> Any:
        raise _Captured(input, config)

    step = Step(live, task_id, _with_body(live, task_id, body, is_async=True))
    try:
        await step.run_async()
    except _Captured as captured:
        return captured
    raise AssertionError("the node did not call its subgraph")


def resolved_task(live: Live, task_id: str, value: Any) -> Any:
    """A planned task that gives ``value`` instead of running its node."""

    def body(input: Any) -> Any:
        return value

    async def body_async(input: Any) -> Any:
        return value

    chosen = body_async if live.is_async else body
    return _with_body(live, task_id, chosen, is_async=live.is_async)


def leave_subgraph(live: Live, task_id: str, value: Any, error: BaseException | None) -> Step:
    """The step that ends a planned task, whose subgraph gave ``value`` or raised ``error``."""
    if live.is_async:

        async def body_async(input: Any) -> Any:
            if error is not None:
                raise error
            return value

        return Step(live, task_id, _with_body(live, task_id, body_async, is_async=True))

    def body(input: Any) -> Any:
        if error is not None:
            raise error
        return value

    return Step(live, task_id, _with_body(live, task_id, body, is_async=False))


def is_fatal(error: BaseException | None) -> bool:
    """Whether the other steps of the superstep are not waited for, as LangGraph decides it."""
    return (
        error is not None
        and not isinstance(error, GraphBubbleUp)
        and not lg.is_invalid_resume(error)
    )
