"""The private symbols of the Dapr SDK this package touches, in one place, checked at import.

``dapr.ext.workflow`` offers ``when_all`` and ``when_any`` only. An engine that reacts to each of N
parallel steps would pay N ``when_any`` over what is left, on every replay: quadratic work a turn,
cubic work a fan-out. :class:`Arrivals` is a composite that costs the same for each arrival.
"""

# The SDK's private side is only partly typed.
# pyright: reportMissingTypeArgument=false, reportUnknownMemberType=false

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any, cast

import grpc
from dapr.conf import settings
from dapr.ext import workflow as sdk

from dapr_runners.engine.errors import UnsupportedSdkError

UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

try:
    from dapr.ext.workflow._durabletask.internal import helpers, shared
    from dapr.ext.workflow._durabletask.internal import protos as pb
    from dapr.ext.workflow._durabletask.task import CompositeTask, Task
    from dapr.ext.workflow._durabletask.worker import (
        _OrchestrationExecutor,  # pyright: ignore[reportPrivateUsage]
        _RuntimeOrchestrationContext,  # pyright: ignore[reportPrivateUsage]
    )
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


def _worker_of(runtime: sdk.WorkflowRuntime) -> Any:
    """What does the work of ``runtime``."""
    worker = cast(Any, runtime).__dict__.get("_WorkflowRuntime__worker")
    if worker is None:
        raise UnsupportedSdkError(symbol="WorkflowRuntime.__worker")
    return worker


def lift_message_limit(runtime: sdk.WorkflowRuntime) -> None:
    """Let a worker of SDK 1.18 receive work items over 4 MiB.

    Without it one such item breaks the stream for every workflow of the app
    (seen on SDK 1.18.3); 1.19 has no limit by default.
    """
    worker = _worker_of(runtime)
    if not getattr(worker, "_channel_options", None):
        worker._channel_options = UNLIMITED


def receive_limit() -> int | None:
    """Bytes of the largest message that a worker of this process receives; None without limit."""
    runtime = sdk.WorkflowRuntime()
    lift_message_limit(runtime)
    worker = _worker_of(runtime)
    given = dict(worker._channel_options).get("grpc.max_receive_message_length", _GRPC_LIMIT)
    return None if given < 0 else given


_GRPC_LIMIT = 4 * 1024 * 1024


_PAGE = 1024


def workflow_ids(client: sdk.DaprWorkflowClient) -> Iterator[str]:
    """The ids of all workflows of the app, also with SDK 1.18, whose client does not list."""
    own: Any = getattr(client, "iter_workflow_instance_ids", None)
    if own is not None:
        yield from own(page_size=_PAGE)
        return
    stub = cast(Any, client).__dict__["_DaprWorkflowClient__obj"]._stub
    following: str | None = None
    while True:
        request = pb.ListInstanceIDsRequest(pageSize=_PAGE, continuationToken=following)
        page = stub.ListInstanceIDs(request)
        yield from page.instanceIds
        if not page.continuationToken:
            return
        following = page.continuationToken


def resolve_activities(runtime: sdk.WorkflowRuntime, resolve: Callable[[str], Any]) -> None:
    """Let ``resolve`` give the activity, or None, for names that are not registered."""
    registry = _worker_of(runtime)._registry
    registered: Callable[[str], Any] = registry.get_activity
    registry.get_activity = lambda name: registered(name) or resolve(name)  # pyright: ignore


def replace_spans(runtime: sdk.WorkflowRuntime, is_watched: Callable[[], bool]) -> None:
    """Let the SDK (1.19) make no span of its own for an activity where ``is_watched``: it would be
    one of another trace, beside that of the step."""
    worker = _worker_of(runtime)
    own: Callable[..., Any] | None = getattr(worker, "_activity_span", None)
    if own is not None:
        worker._activity_span = lambda *args: nullcontext() if is_watched() else own(*args)  # pyright: ignore


def makes_spans() -> bool:
    """Whether a span that the SDK makes for an activity goes anywhere."""
    return trace is not None and not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider
    )


_STREAM = "GetWorkItems"
_FIELDS = {
    "WorkItem": ("activityRequest", "workflowRequest", "completionToken"),
    "WorkflowRequest": ("instanceId", "executionId", "pastEvents", "newEvents"),
    "WorkflowResponse": ("instanceId", "actions", "customStatus", "completionToken"),
    "ActivityRequest": ("name", "input", "taskId", "workflowInstance"),
    "ActivityResponse": ("instanceId", "taskId", "result", "failureDetails", "completionToken"),
}

for _message, _names in _FIELDS.items():
    for _name in _names:
        if _name not in getattr(pb, _message).DESCRIPTOR.fields_by_name:
            raise UnsupportedSdkError(symbol=f"{_message}.{_name}")
_EXECUTION = (
    "_is_replaying",
    "_is_complete",
    "_encoded_custom_status",
    "set_failed",
    "get_actions",
)
for _name in _EXECUTION:
    if not hasattr(_RuntimeOrchestrationContext(""), _name):
        raise UnsupportedSdkError(symbol=f"_RuntimeOrchestrationContext.{_name}")
if not hasattr(_OrchestrationExecutor(cast(Any, None), cast(Any, None)), "_is_suspended"):
    raise UnsupportedSdkError(symbol="_OrchestrationExecutor._is_suspended")
for _name in ("get_string_value", "new_failure_details", "new_complete_workflow_action"):
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


def turn_in(item: Any) -> tuple[Any, str] | None:
    """The request and the token of the workflow's turn that a work item asks for, if it asks for
    one."""
    if not item.HasField("workflowRequest"):
        return None
    return item.workflowRequest, item.completionToken


def reply_channel(runtime: sdk.WorkflowRuntime) -> grpc.Channel:
    """A channel on the connection of the stream of ``runtime``, which equal arguments share: a
    reply that is lost with it is lost with the stream, and its activity given out again."""
    worker = _worker_of(runtime)
    untyped: Any = shared
    return untyped.get_grpc_channel(
        worker._host_address, worker._secure_channel, options=worker._channel_options
    )


def token_metadata() -> tuple[tuple[str, str], ...]:
    """What goes with every call to the sidecar: the token of the environment, if it has one."""
    token: str | None = settings.DAPR_API_TOKEN
    return (("dapr-api-token", token),) if token else ()


def reply_calls(channel: grpc.Channel) -> dict[type, Any]:
    """The calls that tell a sidecar what an activity gave and what a workflow does next, by what
    they take."""
    names: dict[Any, str] = {
        pb.ActivityResponse: "CompleteActivityTask",
        pb.WorkflowResponse: "CompleteOrchestratorTask",
    }
    return {
        message: channel.unary_unary(
            f"/TaskHubSidecarService/{name}",
            request_serializer=message.SerializeToString,
            response_deserializer=pb.CompleteTaskResponse.FromString,
        )
        for message, name in names.items()
    }


def activity_reply(about: Any, token: str, text: str | None, error: BaseException | None) -> Any:
    """What one of :func:`reply_calls` takes. ``about`` is the activity's request, or a reply to it;
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


def too_large(reply: Any, details: str) -> Any:
    """A failure, in place of a ``reply`` that the sidecar does not take."""
    if isinstance(reply, pb.ActivityResponse):
        failure = RuntimeError(f"the result of a step is too large: {details}")
        return activity_reply(reply, reply.completionToken, None, failure)
    failure = RuntimeError(f"what a workflow does next is too large: {details}")
    return _failed_turn(reply.instanceId, reply.completionToken, failure)


def has_failed(reply: Any) -> bool:
    """Whether ``reply`` tells of an error."""
    if isinstance(reply, pb.ActivityResponse):
        return reply.HasField("failureDetails")
    return any(action.completeWorkflow.HasField("failureDetails") for action in reply.actions)


def _failed_turn(instance: str, token: str, error: Exception) -> Any:
    failed: Any = pb.ORCHESTRATION_STATUS_FAILED
    failure = helpers.new_failure_details(error)
    action = helpers.new_complete_workflow_action(-1, failed, "", failure)
    return pb.WorkflowResponse(instanceId=instance, actions=[action], completionToken=token)


def workflow_name(request: Any) -> str | None:
    """The name of the workflow whose turn is asked for, if its beginning was sent along."""
    for events in (request.pastEvents, request.newEvents):
        for event in events[:_BEGINNING]:
            if event.HasField("executionStarted"):
                return event.executionStarted.name
    return None


_BEGINNING = 4
"""Events among which that of a workflow's start is: the turn's own comes before it."""


_SENDS_PARTS = "cachedHistory" in pb.WorkflowRequest.DESCRIPTOR.fields_by_name


def events_held(request: Any) -> int | None:
    """How many events of its history a workflow's turn comes without, as the worker has them (SDK
    1.19)."""
    if not _SENDS_PARTS or not request.HasField("cachedHistory"):
        return None
    return request.cachedHistory.eventCount


def history_call(channel: grpc.Channel) -> Callable[..., Any]:
    """Asks for the history of the workflow of an instance; gives a future of all its events."""

    def request(instance: Any) -> bytes:
        return pb.GetInstanceHistoryRequest(instanceId=instance).SerializeToString()

    def events(data: bytes) -> Any:
        return pb.GetInstanceHistoryResponse.FromString(data).events

    call: Any = channel.unary_unary(
        "/TaskHubSidecarService/GetInstanceHistory",
        request_serializer=request,
        response_deserializer=events,
    )
    return call.future


_SCHEDULED = ("taskScheduled", "timerCreated", "childWorkflowInstanceCreated")
"""Events that tell that an action of the workflow is under way."""


class Execution:
    """An execution of a workflow, driven by the SDK's own executor. It has no versions and no
    patches, and nothing propagated to it: our workflow asks for none."""

    def __init__(self, runtime: sdk.WorkflowRuntime, instance: str) -> None:
        worker = _worker_of(runtime)
        self._executor: Any = _OrchestrationExecutor(worker._registry, worker._logger)
        self._context: Any = _RuntimeOrchestrationContext(instance)
        self._has_failed = False
        if (cache := getattr(worker, "_history_cache", None)) is not None:
            cache.delete(instance)  # of an execution before this one, which the SDK drove

    def take(self, events: Iterable[Any], *, is_past: bool) -> None:
        """Go on with ``events`` of its history."""
        context = self._context
        context._is_replaying = is_past
        try:
            for event in () if self._has_failed else events:
                self._process(event)
        except Exception as error:  # as in the SDK: what the workflow raises ends it
            self._has_failed = True
            context.set_failed(error)

    def _process(self, event: Any) -> None:
        """As the SDK does, but for three flaws of its suspension: that what it did before it was
        suspended is scheduled must not wait, or is taken for undone and done again; a second
        suspension makes the resumption go round for ever; and a second resumption fails it."""
        executor, kind = self._executor, event.WhichOneof("eventType")
        is_suspended = executor._is_suspended
        if kind == ("executionSuspended" if is_suspended else "executionResumed"):
            return
        if is_suspended and kind in _SCHEDULED:
            executor._is_suspended = False
            try:
                executor.process_event(self._context, event)
            finally:
                executor._is_suspended = True
        else:
            executor.process_event(self._context, event)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or continues as new."""
        return self._context._is_complete

    def reply(self, token: str) -> Any:
        """What one of :func:`reply_calls` takes: what the workflow does next."""
        context = self._context
        try:
            return pb.WorkflowResponse(
                instanceId=context.instance_id,
                actions=context.get_actions(),
                customStatus=helpers.get_string_value(context._encoded_custom_status),
                completionToken=token,
            )
        except Exception as error:  # what it gives is no JSON, say
            return _failed_turn(context.instance_id, token, error)
