"""Configs of tasks, bound to the activity that runs them.

LangGraph commits what a thread made in a callback of that thread, outside every context: there, no
context variable tells whose a write is. So the saver and the stream that a task hands on to the
graphs called inside it know the route of their activity themselves.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from langgraph.pregel.protocol import StreamProtocol

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


def bound_task(task: Any, outlet: Outlet) -> Any:
    """A planned task, or one that a task pushed, bound to ``outlet``."""
    config = bound(task.config, outlet)
    return task if config is task.config else replace(task, config=config)
