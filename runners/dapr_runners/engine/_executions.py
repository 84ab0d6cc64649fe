"""The workflows of a process's runners, kept from one of their turns to the next.

The SDK replays a workflow from its beginning at each of its turns, in threads of its own. Here it
takes up what has happened since, where the stream is read: the generator never waits. What is kept
counts only if the history that comes with a turn goes on from it; else the workflow is replayed.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from dapr.ext import workflow as sdk

from dapr_runners.engine._recent import Recent
from dapr_runners.engine._replies import ANSWER_SECONDS, Replies
from dapr_runners.engine._sdk import Execution, events_held, token_metadata, workflow_name

logger = logging.getLogger("dapr_runners")

_KEPT = 1000
"""Workflows that are kept at most. The others are replayed."""
_GIVEN_UP = 100_000
"""Workflows of which it is known that they were kept."""


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
    """Takes the turns of the workflows that ``is_ours`` knows by their names. ``lost`` is called
    when one cannot be taken, and is to be given out again."""

    def __init__(
        self, is_ours: Callable[[str], bool], replies: Replies, lost: Callable[[], None]
    ) -> None:
        self._is_ours = is_ours
        self._replies = replies
        self._lost = lost
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._given_up: Recent[str, None] = Recent(_GIVEN_UP)
        self._metadata = token_metadata()
        self._runtime: Any = None
        self._history: Any = None

    def open(self, runtime: sdk.WorkflowRuntime, history: Callable[..., Any]) -> None:
        """``runtime`` is the one that the workflows are registered with, ``history`` asks for what
        a turn comes without, as :func:`history_call` does."""
        self._runtime = runtime
        self._history = history

    def take(self, request: Any, token: str) -> bool:
        """Do the turn ``request``, which came with ``token``, if it is one of ours."""
        instance = request.instanceId
        with self._lock:
            kept = self._kept.pop(instance, None)
        past = None if kept is None else kept.new_past(request)
        if kept is not None and past is not None:
            self._go_on(kept.execution, past, request, token)
        elif events_held(request) is not None:
            if kept is None and instance not in self._given_up:
                return False  # whoever took its last turn has what this comes without
            asked = self._history(instance, timeout=ANSWER_SECONDS, metadata=self._metadata)
            asked.add_done_callback(partial(self._replay, request, token))
        elif self._is_ours(workflow_name(request) or ""):
            execution = Execution(self._runtime, instance)
            self._go_on(execution, request.pastEvents, request, token)
        else:
            return False
        return True

    def _replay(self, request: Any, token: str, told: Any) -> None:
        try:
            past = told.result()
        except grpc.RpcError as error:
            logger.warning("the history of run %s cannot be had: %s", request.instanceId, error)
            self._lost()
        except grpc.FutureCancelledError:
            pass  # the channel was closed
        else:
            self._go_on(Execution(self._runtime, request.instanceId), past, request, token)

    def _go_on(self, execution: Execution, past: Any, request: Any, token: str) -> None:
        execution.take(past, is_past=True)
        execution.take(request.newEvents, is_past=False)
        reply = execution.reply(token)
        if not execution.is_over:
            self._keep(execution, request)
        self._replies.leave(reply)

    def _keep(self, execution: Execution, request: Any) -> None:
        new = request.newEvents
        kept = _Kept(
            execution,
            request.executionId.value,
            (events_held(request) or 0) + len(request.pastEvents),
            len(new),
            _bytes_of(new),
        )
        with self._lock:
            self._kept[request.instanceId] = kept
            if len(self._kept) > _KEPT:
                given_up, _ = self._kept.popitem(last=False)
                self._given_up[given_up] = None


def _bytes_of(events: Any) -> bytes:
    return b"".join(event.SerializeToString(deterministic=True) for event in events)
