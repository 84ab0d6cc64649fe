"""Activities and turns of workflows, taken off a worker's stream as they come.

The SDK hands an activity from its reader to a queue, to a thread that waits for it, to an event
loop, and its result to a pool of threads that send. For a step of a tenth of a millisecond these
cost more than the step. Here the reader itself gives it to the threads of the steps, and what these
have done together is answered together.
"""

import asyncio
import json
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import grpc

from dapr_runners.engine._hands import Cut, Done
from dapr_runners.engine._replies import Replies
from dapr_runners.engine._sdk import activity_in, is_stream_of_work, turn_in
from dapr_runners.engine._work import Json

AT_ONCE = 100 * (os.cpu_count() or 1)
"""Activities that are begun and not answered yet, at most: as many as the SDK does at once."""

Begin: TypeAlias = Callable[[str, Json, Done], None]
"""Begins an activity of a runner with its input, and does not block. What it raises, nothing was
begun for."""


class Intake(grpc.UnaryStreamClientInterceptor):
    """Takes those activities off the stream that ``runner_of`` has a runner for, by their names,
    and the turns that ``take_turn`` takes; the SDK gets the rest."""

    def __init__(
        self,
        runner_of: Callable[[str], str | None],
        begin: Begin,
        replies: Replies,
        take_turn: Callable[[Any, str], bool],
    ) -> None:
        self._runner_of = runner_of
        self._begin = begin
        self._take_turn = take_turn
        self._replies = replies
        self._lock = threading.Lock()
        self._begun = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._items: Any = None
        self._waiting: deque[tuple[str, Any, str]] = deque()

    def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        items = continuation(client_call_details, request)
        if not is_stream_of_work(client_call_details.method):
            return items
        self._loop = asyncio.get_running_loop()
        with self._lock:
            self._waiting.clear()  # they are given out again, maybe to another worker
            self._items = items
        return _Rest(items, self._take)

    def break_off(self) -> None:
        """End the stream: the SDK opens it again, and the sidecar gives out again what it has no
        answer to."""
        with self._lock:
            items = self._items
        if items is not None:
            items.cancel()

    def close_loop(self) -> None:
        """The SDK leaves the loop it ran the stream on open, with its sockets."""
        if self._loop is not None and not self._loop.is_running():
            self._loop.close()

    def _take(self, item: Any) -> bool:
        if (turn := turn_in(item)) is not None:
            return self._take_turn(*turn)
        found = activity_in(item)
        if found is None or (runner := self._runner_of(found[0].name)) is None:
            return False
        with self._lock:
            if self._begun >= AT_ONCE:
                self._waiting.append((runner, *found))
                return True
            self._begun += 1
        self._start(runner, *found)
        return True

    def _start(self, runner: str, request: Any, token: str) -> None:
        def done(result: Any, error: BaseException | None) -> None:
            if not isinstance(error, Cut):
                self._replies.send(request, token, result, error)
            with self._lock:
                if not self._waiting:
                    self._begun -= 1
                    return
                following = self._waiting.popleft()
            self._start(*following)

        try:
            self._begin(runner, json.loads(request.input.value), done)
        except Exception as error:  # a workflow that is not ours calls what is
            done(None, error)


class _Rest:
    """A stream of work items without those that ``take`` takes."""

    def __init__(self, items: Any, take: Callable[[Any], bool]) -> None:
        self._items = items
        self._take = take

    def __iter__(self) -> "_Rest":
        return self

    def __next__(self) -> Any:
        while self._take(item := next(self._items)):
            pass
        return item

    def __getattr__(self, name: str) -> Any:
        return getattr(self._items, name)
