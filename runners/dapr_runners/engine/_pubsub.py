"""Live chunks through a Dapr pub/sub component, where one is named for that.

A topic a run: so a message reaches the callers that follow the run, and the replicas of an app,
which share a subscription, do not take each other's.
"""

import logging
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from dapr.proto import (
    api_service_v1,  # pyright: ignore[reportPrivateImportUsage]
    api_v1,
    appcallback_v1,  # pyright: ignore[reportPrivateImportUsage]
)

from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import StateStore, open_channel

logger = logging.getLogger("dapr_runners")


class PubSub:
    """The pub/sub component ``name`` of the sidecar that has ``store``. What goes through it is
    encrypted if what is stored is."""

    def __init__(self, name: str, store: StateStore) -> None:
        self.name = name
        self._store = store
        self._metadata = store.channel_metadata
        self._channel = open_channel(store.address)
        self._stub: Any = api_service_v1.DaprStub(self._channel)

    def publish(self, topic: str, data: bytes) -> None:
        """Send ``data``; a fault is logged, as what is sent here is recorded elsewhere as well."""
        request = api_v1.PublishEventRequest(
            pubsub_name=self.name,
            topic=topic,
            data=self._store.sealed(topic, data),
            data_content_type="application/octet-stream",
        )
        try:
            self._stub.PublishEvent(request, timeout=10, metadata=self._metadata)
        except grpc.RpcError as error:
            logger.warning("publishing to %s: %s", topic, error)

    def subscribe(self, topic: str, listener: Callable[[bytes], None]) -> Callable[[], None]:
        """Call ``listener`` (from a thread) for each message of ``topic``; returns its end."""
        outgoing: queue.SimpleQueue[Any] = queue.SimpleQueue()
        initial = api_v1.SubscribeTopicEventsRequestInitialAlpha1(
            pubsub_name=self.name, topic=topic
        )
        outgoing.put(api_v1.SubscribeTopicEventsRequestAlpha1(initial_request=initial))
        call = self._stub.SubscribeTopicEventsAlpha1(_until_none(outgoing), metadata=self._metadata)

        def opened(data: bytes) -> None:
            listener(self._store.opened(topic, data))

        thread = threading.Thread(
            target=_listen, args=(call, outgoing, opened), name="dapr-runners-topic", daemon=True
        )
        thread.start()

        def close() -> None:
            outgoing.put(None)
            call.cancel()

        return close


def _until_none(outgoing: "queue.SimpleQueue[Any]") -> Iterator[Any]:
    while (request := outgoing.get()) is not None:
        yield request


def _listen(
    call: Any, outgoing: "queue.SimpleQueue[Any]", listener: Callable[[bytes], None]
) -> None:
    success = appcallback_v1.TopicEventResponse()
    try:
        for response in call:
            if response.HasField("event_message"):
                message = response.event_message
                listener(message.data)
                processed = api_v1.SubscribeTopicEventsRequestProcessedAlpha1(
                    id=message.id, status=success
                )
                outgoing.put(api_v1.SubscribeTopicEventsRequestAlpha1(event_processed=processed))
    except DaprRunnersError as error:
        logger.warning("a live message cannot be read, and no more will be: %s", error)
        call.cancel()
    except grpc.RpcError as error:
        code: Any = error
        if code.code() is not grpc.StatusCode.CANCELLED:
            # A caller then gets its chunks when their step is recorded.
            logger.warning("the subscription to live chunks ended: %s", error)
