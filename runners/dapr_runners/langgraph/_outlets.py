"""Configs of tasks, bound to the activity that runs them.

LangGraph commits what a thread made in a callback of that thread, outside every context: there, no
context variable tells whose a write is. So the saver and the stream that a task hands on to the
graphs called inside it know the route of their activity themselves.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from langgraph.pregel.protocol import StreamProtocol

from dapr_runners._current_step import CurrentStep, effects_of, messages_of, running
from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._outbox import OutboxSaver
from dapr_runners.langgraph._route import Route, current_route, routed

Outlet = Callable[[], Route | None]
"""The route to take where the context tells none."""


class _RoutedStream(StreamProtocol):
    """``inner``, whose chunks go where the context or ``outlet`` says."""

    __slots__ = ("inner",)

    def __init__(self, inner: StreamProtocol, outlet: Outlet) -> None:
        def put(chunk: Any) -> None:
            with routed(current_route.get() or outlet()):
                inner(chunk)

        super().__init__(put, inner.modes)
        self.inner = inner


def bound(config: Any, outlet: Outlet) -> Any:
    """``config`` with its saver and its stream bound to ``outlet``."""
    conf = config[lg.CONF]
    changed: dict[str, Any] = {}
    saver = conf.get(lg.CONFIG_KEY_CHECKPOINTER)
    if isinstance(saver, OutboxSaver):
        changed[lg.CONFIG_KEY_CHECKPOINTER] = saver.toward(outlet)
    stream = conf.get(lg.CONFIG_KEY_STREAM)
    if stream is not None:
        inner = stream.inner if isinstance(stream, _RoutedStream) else stream
        changed[lg.CONFIG_KEY_STREAM] = _RoutedStream(inner, outlet)
    return {**config, lg.CONF: {**conf, **changed}} if changed else config


class _Body:
    """What a task runs, once for each attempt of LangGraph's at it, as ``step``."""

    __slots__ = ("_proc", "_step")

    def __init__(self, proc: Any, step: CurrentStep) -> None:
        self._proc = proc
        self._step = step

    def _begin(self) -> None:
        if (effects := effects_of(self._step)) is not None:
            effects.new_pass()
        if (messages := messages_of(self._step)) is not None:
            messages.new_pass()

    def _end(self) -> None:
        if (messages := messages_of(self._step)) is not None:
            messages.complete()

    def invoke(self, *args: Any, **kwargs: Any) -> Any:
        self._begin()
        with running(self._step):
            result = self._proc.invoke(*args, **kwargs)
        self._end()
        return result

    async def ainvoke(self, *args: Any, **kwargs: Any) -> Any:
        self._begin()
        with running(self._step):
            result = await self._proc.ainvoke(*args, **kwargs)
        self._end()
        return result

    async def astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        self._begin()
        with running(self._step):
            async for chunk in self._proc.astream(*args, **kwargs):
                yield chunk
        self._end()


def bound_task(task: Any, outlet: Outlet) -> Any:
    """A planned task, or one that a task pushed, bound to ``outlet``."""
    config = bound(task.config, outlet)
    return task if config is task.config else replace(task, config=config)


def as_step(task: Any, step: CurrentStep | None, *, is_part: bool = False) -> Any:
    """A task to run as ``step``; with ``is_part``, one that it pushed, which is recorded for
    itself."""
    if task is None or step is None:
        return task
    return replace(task, proc=_Body(task.proc, step.inside(task.id) if is_part else step))
