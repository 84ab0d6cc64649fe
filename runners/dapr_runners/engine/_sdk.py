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

import grpc
from dapr.ext import workflow as sdk

from dapr_runners.engine.errors import UnsupportedSdkError

UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

try:
    from dapr.ext.workflow._durabletask.internal import helpers, shared
    from dapr.ext.workflow._durabletask.internal import protos as pb
    from dapr.ext.workflow._durabletask.task import CompositeTask, Task
except ImportError as error:
    raise UnsupportedSdkError(symbol=f"dapr.ext.workflow._durabletask: {error}") from error

try:  # as the SDK does, once: it is asked for with every activity
    from opentelemetry import trace
except ImportError:
    trace = None

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


def makes_spans() -> bool:
    """Whether a span that the SDK makes for an activity goes anywhere."""
    return trace is not None and not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider
    )


_STREAM = "GetWorkItems"
_REPLY = "CompleteActivityTask"
_FIELDS = {
    "WorkItem": ("activityRequest", "completionToken"),
    "ActivityRequest": ("name", "input", "taskId", "workflowInstance"),
    "ActivityResponse": ("instanceId", "taskId", "result", "failureDetails", "completionToken"),
}

for _message, _names in _FIELDS.items():
    for _name in _names:
        if _name not in getattr(pb, _message).DESCRIPTOR.fields_by_name:
            raise UnsupportedSdkError(symbol=f"{_message}.{_name}")
for _name in ("get_string_value", "new_failure_details"):
    if not hasattr(helpers, _name):
        raise UnsupportedSdkError(symbol=f"_durabletask.internal.helpers.{_name}")


def is_stream_of_work(method: str | bytes) -> bool:
    """Whether the gRPC ``method`` opens the stream on which a worker gets its work."""
    return (method.decode() if isinstance(method, bytes) else method).endswith(_STREAM)


def activity_in(item: Any) -> tuple[Any, str] | None:
    """The request and the token of the activity that a work item asks for, if it asks for one."""
    if not item.HasField("activityRequest"):
        return None
    return item.activityRequest, item.completionToken


def reply_channel(runtime: sdk.WorkflowRuntime) -> grpc.Channel:
    """A channel on the connection of the stream of ``runtime``, which equal arguments share: a
    reply that is lost with it is lost with the stream, and its activity given out again."""
    worker = cast(Any, runtime).__dict__["_WorkflowRuntime__worker"]
    untyped: Any = shared
    return untyped.get_grpc_channel(
        worker._host_address, worker._secure_channel, options=worker._channel_options
    )


def reply_call(channel: grpc.Channel) -> Any:
    """The call that tells a sidecar what an activity gave."""
    return channel.unary_unary(
        f"/TaskHubSidecarService/{_REPLY}",
        request_serializer=pb.ActivityResponse.SerializeToString,
        response_deserializer=pb.CompleteTaskResponse.FromString,
    )


def activity_reply(about: Any, token: str, text: str | None, error: BaseException | None) -> Any:
    """What :func:`reply_call` takes. ``about`` is the activity's request, or a reply to it;
    ``text`` is the result in JSON."""
    workflow = about.workflowInstance if isinstance(about, pb.ActivityRequest) else about
    failure: Any = error
    return pb.ActivityResponse(
        instanceId=workflow.instanceId,
        taskId=about.taskId,
        completionToken=token,
        result=helpers.get_string_value(text),
        failureDetails=None if error is None else helpers.new_failure_details(failure),
    )
