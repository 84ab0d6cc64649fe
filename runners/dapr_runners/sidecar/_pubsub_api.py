"""Pub/sub in memory: what is published goes to one of those who subscribe to the topic then."""

import asyncio
import itertools
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from dapr_runners.sidecar._components import Components
from dapr_runners.sidecar._grpc import Context, Methods, abort, stream, unary
from dapr_runners.sidecar._protos import Empty, api_v1, appcallback_v1

_RETRY_SECONDS = 0.2
_OVERRIDES = ("cloudevent.id", "cloudevent.source", "cloudevent.type")
"""Metadata that sets attributes of the event."""


@dataclass(slots=True, eq=False)
class _Subscriber:
    dead_letter_topic: str
    events: "asyncio.Queue[Any]" = field(default_factory=lambda: asyncio.Queue[Any]())
    out: dict[str, Any] = field(default_factory=dict[str, Any])


class PubSubApi:
    """Publishing, and subscribing by a stream. Nothing is kept for those who come later."""

    def __init__(self, components: Components, app_id: str) -> None:
        self._names = components.pubsubs
        self._app_id = app_id
        self._topics: dict[tuple[str, str], list[_Subscriber]] = {}
        self._turns = itertools.count()

    def methods(self) -> Methods:
        """What to serve."""
        return {
            "PublishEvent": unary(self.publish, api_v1.PublishEventRequest, Empty),
            "SubscribeTopicEventsAlpha1": stream(
                self.subscribe,
                api_v1.SubscribeTopicEventsRequestAlpha1,
                api_v1.SubscribeTopicEventsResponseAlpha1,
            ),
        }

    async def publish(self, request: Any, context: Context) -> Empty:
        """Deliver a message to one subscriber of its topic."""
        await self._check(request.pubsub_name, request.topic, context)
        self._deliver(self._event(request), request.pubsub_name, request.topic)
        return Empty()

    async def subscribe(self, requests: AsyncIterator[Any], context: Context) -> None:
        """Send messages of a topic, and take what became of them."""
        initial: Any = (await anext(requests)).initial_request
        await self._check(initial.pubsub_name, initial.topic, context)
        topic = initial.pubsub_name, initial.topic
        subscriber = _Subscriber(initial.dead_letter_topic)
        self._topics.setdefault(topic, []).append(subscriber)
        accepted = api_v1.SubscribeTopicEventsResponseInitialAlpha1()
        await context.write(api_v1.SubscribeTopicEventsResponseAlpha1(initial_response=accepted))
        answers = asyncio.create_task(self._take_answers(requests, subscriber, topic))
        try:
            while True:
                event = await subscriber.events.get()
                await context.write(api_v1.SubscribeTopicEventsResponseAlpha1(event_message=event))
        finally:
            answers.cancel()
            self._topics[topic].remove(subscriber)
            for event in subscriber.out.values():
                self._deliver(event, *topic)

    async def _take_answers(
        self, requests: AsyncIterator[Any], subscriber: _Subscriber, topic: tuple[str, str]
    ) -> None:
        statuses = appcallback_v1.TopicEventResponse
        async for request in requests:
            answer = request.event_processed
            event = subscriber.out.pop(answer.id, None)
            if event is None:
                continue
            if answer.status.status == statuses.RETRY:
                loop = asyncio.get_running_loop()
                loop.call_later(_RETRY_SECONDS, self._deliver, event, *topic)
            elif answer.status.status == statuses.DROP and subscriber.dead_letter_topic:
                self._deliver(event, topic[0], subscriber.dead_letter_topic)

    def _deliver(self, event: Any, pubsub: str, topic: str) -> None:
        subscribers = self._topics.get((pubsub, topic))
        if subscribers:
            subscriber = subscribers[next(self._turns) % len(subscribers)]
            subscriber.out[event.id] = event
            subscriber.events.put_nowait(event)

    def _event(self, request: Any) -> Any:
        event = appcallback_v1.TopicEventRequest(
            id=str(uuid.uuid4()),
            source=self._app_id,
            type="com.dapr.event.sent",
            spec_version="1.0",
            data_content_type=request.data_content_type or "text/plain",
            data=request.data,
            topic=request.topic,
            pubsub_name=request.pubsub_name,
        )
        if request.data_content_type.startswith("application/cloudevents+json"):
            given = json.loads(request.data)
            event.id = str(given.get("id", event.id))
            event.source = str(given.get("source", event.source))
            event.type = str(given.get("type", event.type))
            event.data_content_type = str(given.get("datacontenttype", "application/json"))
            data = given.get("data", "")
            event.data = data.encode() if isinstance(data, str) else json.dumps(data).encode()
            return event
        for name, value in request.metadata.items():  # daprd ignores the case of names
            if value and name.lower() in _OVERRIDES:
                setattr(event, name.lower().removeprefix("cloudevent."), value)
        return event

    async def _check(self, pubsub: str, topic: str, context: Context) -> None:
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        if not pubsub:
            await abort(context, invalid, "pubsub name is empty")
        if pubsub not in self._names:
            await abort(context, invalid, f"pubsub {pubsub} is not found")
        if not topic:
            await abort(context, invalid, f"topic is empty in pubsub {pubsub}")
