"""What activities gave and workflows do next, sent to the sidecar.

Whoever has a result leaves it here and goes on. Results that are there together are sent at once by
one thread, which waits for the last of them only.
"""

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import grpc

from dapr_runners.engine._hands import Hands
from dapr_runners.engine._sdk import (
    activity_reply,
    has_failed,
    reply_calls,
    token_metadata,
    too_large,
)

logger = logging.getLogger("dapr_runners")

_SENDERS = 4
"""Threads that send at once."""
ANSWER_SECONDS = 30.0
"""For an answer to arrive in."""
_CLOSING = 5.0
"""Seconds in which what is ready still goes out when the worker stops. As in the SDK."""


class Replies:
    """Sends results to the sidecar, in threads of its own: those of the steps may all be taken.
    ``lost`` is called when the sidecar may not have got one, and is to have it given out again."""

    def __init__(self, lost: Callable[[], None]) -> None:
        self._lost = lost
        self._metadata = token_metadata()
        self._hands = Hands(_SENDERS, "dapr-runners-reply")
        self._lock = threading.Condition()
        self._channel: grpc.Channel | None = None
        self._calls: dict[type, Any] = {}
        self._waiting: list[Any] = []
        self._senders = 0
        self._is_closed = False

    def open(self, channel: grpc.Channel) -> None:
        """Send on ``channel``, which is closed at the end."""
        self._channel = channel
        self._calls = reply_calls(channel)
        self._hands.open()

    def send(self, request: Any, token: str, result: Any, error: BaseException | None) -> None:
        """Answer the activity ``request``, which came with ``token``."""
        try:
            text = None if error is not None else json.dumps(result)
            reply = activity_reply(request, token, text, error)
        except Exception as refused:  # not JSON, or not Unicode
            reply = activity_reply(request, token, None, RuntimeError(ascii(refused)))
        self.leave(reply)

    def leave(self, reply: Any) -> None:
        """Send ``reply``, which is one that :func:`reply_calls` take."""
        with self._lock:
            if self._is_closed:
                return  # nobody listens any more: it is given out again
            self._waiting.append(reply)
            if self._senders >= min(_SENDERS, len(self._waiting)):
                return
            self._senders += 1
        self._hands.go_on(self._send_all)

    def _send_all(self) -> None:
        while batch := self._take():
            try:
                self._send(batch)
            except BaseException:
                with self._lock:
                    self._ended()
                raise

    def _take(self) -> list[Any]:
        """What there is to send. If that is nothing, the sender has ended: who leaves a result from
        now on begins another."""
        with self._lock:
            batch, self._waiting = self._waiting, []
            if self._is_closed or not batch:
                self._ended()
                return []
            return batch

    def _ended(self) -> None:
        self._senders -= 1
        self._lock.notify_all()

    def _send(self, batch: list[Any]) -> None:
        *others, last = batch
        try:
            calls = [(reply, self._begin(reply)) for reply in others]
            self._check(last, lambda: self._do(last))
            for reply, call in calls:
                self._check(reply, call.result)
        except ValueError:  # the channel was closed under it
            if not self._is_closed:
                raise

    def _begin(self, reply: Any) -> Any:
        return self._calls[type(reply)].future(
            reply, timeout=ANSWER_SECONDS, metadata=self._metadata
        )

    def _do(self, reply: Any) -> Any:
        return self._calls[type(reply)](reply, timeout=ANSWER_SECONDS, metadata=self._metadata)

    def _check(self, reply: Any, call: Callable[[], Any]) -> None:
        try:
            call()
        except grpc.RpcError as raised:
            error: Any = raised
            if not self._is_closed:
                self._failed(reply, error)

    def _failed(self, reply: Any, error: Any) -> None:
        """A reply is never sent twice: it could be taken for that of another step, when the run has
        gone on meanwhile."""
        match error.code():
            case grpc.StatusCode.RESOURCE_EXHAUSTED if not has_failed(reply):
                # Larger than the sidecar takes: without an answer it would be given out for ever.
                short = too_large(reply, error.details())
                self._check(short, lambda: self._do(short))
            case grpc.StatusCode.UNKNOWN | grpc.StatusCode.NOT_FOUND:
                # Another worker was faster, or the run is over.
                logger.debug("a result of run %s is not wanted: %s", reply.instanceId, error)
            case _:
                logger.warning(
                    "a result of run %s may not have reached the sidecar, and is asked for again:"
                    " %s",
                    reply.instanceId,
                    error.details(),
                )
                self._lost()

    def close(self) -> None:
        """Send what is ready, and nothing after it."""
        with self._lock:
            self._lock.wait_for(lambda: self._senders == 0, timeout=_CLOSING)
            self._is_closed = True
        self._hands.close()
        if self._channel is not None:
            self._channel.close()
