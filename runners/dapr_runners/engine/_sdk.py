"""The private symbols of the Dapr SDK this package touches, in one place, checked at import.

``dapr.ext.workflow`` offers ``when_all`` and ``when_any`` only. An engine that reacts to each of N
parallel steps would pay N ``when_any`` over what is left, on every replay: quadratic work a turn,
cubic work a fan-out. :class:`Arrivals` is a composite that costs the same for each arrival.
"""

# The SDK's private side is only partly typed.
# pyright: reportMissingTypeArgument=false, reportUnknownMemberType=false

from collections import deque
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, cast

from dapr.ext import workflow as sdk

from dapr_runners.engine.errors import UnsupportedSdkError

UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

try:
    from dapr.ext.workflow._durabletask.task import CompositeTask, Task
except ImportError as error:
    raise UnsupportedSdkError(symbol="dapr.ext.workflow._durabletask.task") from error

_PARENT, _COMPLETE, _RESULT = "_parent", "_is_complete", "_result"


class _Signal(Task):
    """A task that is completed by hand."""

    def __init__(self) -> None:
        super().__init__()
        setattr(self, _RESULT, None)

    def fire(self) -> None:
        setattr(self, _COMPLETE, True)


if not all(hasattr(_Signal(), name) for name in (_PARENT, _COMPLETE)):
    raise UnsupportedSdkError(symbol="Task._parent, Task._is_complete")


class Arrivals(CompositeTask):
    """Tasks in the order in which they complete, for a workflow that waits for the next one."""

    def __init__(self) -> None:
        self._ready: deque[Any] = deque()
        self._signal = _Signal()
        super().__init__([])

    def add(self, task: Any) -> Any:
        """Watch ``task``; returns it."""
        if task.is_complete:
            self._ready.append(task)
        else:
            setattr(task, _PARENT, self)
        return task

    def on_child_completed(self, task: Any) -> None:
        self._ready.append(task)
        self._signal.fire()

    def take(self) -> Any:
        """The next completed task, or None."""
        return self._ready.popleft() if self._ready else None

    def wait(self) -> Any:
        """A task to yield: it completes when :meth:`take` has something to give."""
        self._signal = _Signal()
        if self._ready:
            self._signal.fire()
        return self._signal


def lift_message_limit(runtime: sdk.WorkflowRuntime) -> None:
    """Let a worker of SDK 1.18 receive work items over 4 MiB.

    Without it one such item breaks the stream for every workflow of the app
    (seen on SDK 1.18.3); 1.19 has no limit by default.
    """
    worker = cast(Any, runtime).__dict__.get("_WorkflowRuntime__worker")
    if worker is None:
        raise UnsupportedSdkError(symbol="WorkflowRuntime.__worker")
    if not getattr(worker, "_channel_options", None):
        worker._channel_options = UNLIMITED


def receive_limit() -> int | None:
    """Bytes of the largest message that a worker of this process receives; None without limit."""
    runtime = sdk.WorkflowRuntime()
    lift_message_limit(runtime)
    worker = cast(Any, runtime).__dict__["_WorkflowRuntime__worker"]
    given = dict(worker._channel_options).get("grpc.max_receive_message_length", _GRPC_LIMIT)
    return None if given < 0 else given


_GRPC_LIMIT = 4 * 1024 * 1024


def registered_names(runtime: sdk.WorkflowRuntime) -> Callable[[str], bool]:
    """Tells whether a workflow name is registered with ``runtime``."""
    worker = cast(Any, runtime).__dict__["_WorkflowRuntime__worker"]
    registry = worker._registry
    return lambda name: registry.get_orchestrator(name) is not None


def resolve_activities(runtime: sdk.WorkflowRuntime, resolve: Callable[[str], Any]) -> None:
    """Let ``resolve`` give the activity, or None, for names that are not registered."""
    registry = cast(Any, runtime).__dict__["_WorkflowRuntime__worker"]._registry
    registered: Callable[[str], Any] = registry.get_activity
    registry.get_activity = lambda name: registered(name) or resolve(name)  # pyright: ignore


def replace_spans(runtime: sdk.WorkflowRuntime, is_watched: Callable[[], bool]) -> None:
    """Let the SDK (1.19) make no span of its own for an activity where ``is_watched``: it would be
    one of another trace, beside that of the step."""
    worker = cast(Any, runtime).__dict__["_WorkflowRuntime__worker"]
    own: Callable[..., Any] | None = getattr(worker, "_activity_span", None)
    if own is not None:
        worker._activity_span = lambda *args: nullcontext() if is_watched() else own(*args)  # pyright: ignore
