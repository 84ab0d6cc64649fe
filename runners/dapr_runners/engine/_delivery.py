"""Hands one message to whom it is for: a topic of a Dapr pub/sub component, or an HTTP endpoint.

A message is plain data, as it is recorded::

    {"id": str, "pubsub": component, "topic": str, "type": content type, "metadata": {str: str},
     "data": bytes}
    {"id": str, "url": str, "headers": {str: str}, "data": bytes}
"""

import http.client
import urllib.error
import urllib.request
from typing import Any

import grpc
from dapr.proto import (
    api_service_v1,  # pyright: ignore[reportPrivateImportUsage]
    api_v1,
)

from dapr_runners.engine._work import Json
from dapr_runners.state import StateStore

_TIMEOUT = 10.0
"""Seconds that a receiver may take to answer."""
_LATER = (408, 425, 429)
_REFUSALS = (
    grpc.StatusCode.INVALID_ARGUMENT,  # no such component, no topic
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION,  # no pub/sub at all
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,  # larger than the sidecar takes
    grpc.StatusCode.UNIMPLEMENTED,
)


class NotTaken(Exception):
    """A message was not taken, as ``reason`` says; ``for_good`` if asking again would change
    nothing."""

    def __init__(self, reason: str, *, for_good: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.for_good = for_good


class Delivery:
    """Delivers messages; to pub/sub through the sidecar of ``store``."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._stub: Any = None

    def deliver(self, message: Json) -> None:
        """Hand ``message`` over. Blocks. Raises :class:`NotTaken`."""
        if "url" in message:
            self._post(message)
        else:
            self._publish(message)

    def _publish(self, message: Json) -> None:
        if self._stub is None:
            self._stub = api_service_v1.DaprStub(self._store.channel)
        request = api_v1.PublishEventRequest(
            pubsub_name=message["pubsub"],
            topic=message["topic"],
            data=message["data"],
            data_content_type=message["type"],
            metadata={**message["metadata"], "cloudevent.id": message["id"]},
        )
        try:
            self._stub.PublishEvent(
                request, timeout=_TIMEOUT, metadata=self._store.channel_metadata
            )
        except grpc.RpcError as error:
            call: Any = error
            reason = f"{call.code().name}: {call.details()}"
            raise NotTaken(reason, for_good=call.code() in _REFUSALS) from error

    def _post(self, message: Json) -> None:
        headers = {**message["headers"], "Idempotency-Key": message["id"]}
        request = urllib.request.Request(
            message["url"], data=message["data"], headers=headers, method="POST"
        )
        try:
            with _opener().open(request, timeout=_TIMEOUT):
                return
        except urllib.error.HTTPError as error:
            with error:
                for_good = error.code < 500 and error.code not in _LATER
                reason = f"HTTP {error.code} {error.reason}".strip()
            raise NotTaken(reason, for_good=for_good) from error
        except (OSError, http.client.HTTPException) as error:
            raise NotTaken(f"{type(error).__name__}: {error}", for_good=False) from error


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The redirect of a POST would be followed by a GET, without what is to be told."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirects)


def destination(message: Json) -> str:
    """Where ``message`` goes, for people."""
    return message.get("url") or f"{message['pubsub']}/{message['topic']}"
