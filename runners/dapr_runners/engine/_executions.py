"""The workflows of a process's runners, kept from one of their turns to the next.

The SDK replays a workflow from its beginning at each of its turns, in threads of its own. Here it
takes up what has happened since, where the stream is read: the generator never waits. What is kept
counts only if the history that comes with a turn goes on from it; else the workflow is replayed.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dapr.ext import workflow as sdk

from dapr_runners.engine._replies import Replies
from dapr_runners.engine._sdk import Execution, events_held, workflow_name

_KEPT = 1000
"""Workflows that are kept at most. The others are replayed."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A workflow after a turn, and what its history has to begin with at the next."""

    execution: Execution
    execution_id: str
    committed: int
    """Events that were history at that turn."""
    new: int
    """Events that were new."""
    taken: bytes
    """These, serialized: an event would hold on to its work item. The first of them has the time of
    the turn."""

    def new_past(self, request: Any) -> list[Any] | None:
        """What was added to the history since; None when it has gone another way."""
        past = request.pastEvents
        at = self.committed - (events_held(request) or 0)
        after = at + self.new
        is_same = request.executionId.value == self.execution_id
        if not is_same or _bytes_of(past[at:after]) != self.taken:
            return None
        return past[after:]


class Executions:
    """Takes the turns of the workflows that ``is_ours`` knows by their names."""

    def __init__(self, is_ours: Callable[[str], bool], replies: Replies) -> None:
        self._is_ours = is_ours
        self._replies = replies
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._runtime: sdk.WorkflowRuntime | None = None

    def open(self, runtime: sdk.WorkflowRuntime) -> None:
        """``runtime`` is the one that the workflows are registered with."""
        self._runtime = runtime

    def take(self, request: Any, token: str) -> bool:
        """Do the turn ``request``, which came with ``token``, if it is one of ours and the history
        that it needs is there."""
        assert self._runtime is not None
        instance = request.instanceId
        with self._lock:
            kept = self._kept.pop(instance, None)
        past = None if kept is None else kept.new_past(request)
        if kept is not None and past is not None:
            execution = kept.execution
        elif events_held(request) is None and self._is_ours(workflow_name(request) or ""):
            execution, past = Execution(self._runtime, instance), request.pastEvents
        else:
            return False  # the SDK asks for what it has not
        execution.take(past, is_past=True)
        execution.take(request.newEvents, is_past=False)
        reply = execution.reply(token)
        if not execution.is_over:
            self._keep(execution, request)
        self._replies.leave(reply)
        return True

    def _keep(self, execution: Execution, request: Any) -> None:
        past, new = request.pastEvents, request.newEvents
        kept = _Kept(
            execution,
            request.executionId.value,
            (events_held(request) or 0) + len(past),
            len(new),
            _bytes_of(new),
        )
        with self._lock:
            self._kept[request.instanceId] = kept
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)


def _bytes_of(events: Any) -> bytes:
    return b"".join(event.SerializeToString(deterministic=True) for event in events)
