"""Publishing and subscribing, in memory."""

import json
import threading
from collections.abc import Iterator

import grpc
import pytest
from dapr.clients import DaprClient
from dapr.clients.grpc._response import TopicEventResponse
from dapr.clients.grpc.subscription import SubscriptionMessage

from dapr_runners.sidecar import EmbeddedSidecar


@pytest.fixture
def dapr(sidecar: EmbeddedSidecar, monkeypatch: pytest.MonkeyPatch) -> Iterator[DaprClient]:
    monkeypatch.setattr("dapr.conf.settings.DAPR_HTTP_PORT", sidecar.http_port)
    with DaprClient(address=sidecar.address) as client:
        yield client


def test_a_subscriber_gets_what_is_published(dapr: DaprClient) -> None:
    subscription = dapr.subscribe("pubsub", "orders")
    dapr.publish_event("pubsub", "others", json.dumps({"id": 0}))
    dapr.publish_event(
        "pubsub", "orders", json.dumps({"id": 1}), data_content_type="application/json"
    )
    message = subscription.next_message()
    assert isinstance(message, SubscriptionMessage)
    assert (message.topic(), message.data()) == ("orders", {"id": 1})
    subscription.respond_success(message)
    subscription.close()


def test_a_message_is_tried_again_until_it_succeeds(dapr: DaprClient) -> None:
    seen: list[str] = []
    done = threading.Event()

    def handle(message: SubscriptionMessage) -> TopicEventResponse:
        seen.append(message.id())
        if len(seen) < 3:
            return TopicEventResponse("retry")
        done.set()
        return TopicEventResponse("success")

    close = dapr.subscribe_with_handler("pubsub", "orders", handle)
    dapr.publish_event("pubsub", "orders", "x")
    assert done.wait(60)
    close()
    assert len(set(seen)) == 1


def test_a_dropped_message_goes_to_the_dead_letters(dapr: DaprClient) -> None:
    dead = dapr.subscribe("pubsub", "dead")
    orders = dapr.subscribe("pubsub", "orders", dead_letter_topic="dead")
    dapr.publish_event("pubsub", "orders", "poison")
    message = orders.next_message()
    assert message is not None
    orders.respond_drop(message)
    letter = dead.next_message()
    assert letter is not None
    assert letter.data() == "poison"
    dead.respond_success(letter)
    for subscription in (orders, dead):
        subscription.close()


def test_metadata_sets_attributes_of_the_event(dapr: DaprClient) -> None:
    subscription = dapr.subscribe("pubsub", "orders")
    given = {"cloudevent.id": "7", "CloudEvent.Type": "order", "cloudevent.source": "shop"}
    dapr.publish_event("pubsub", "orders", "x", publish_metadata=given)
    message = subscription.next_message()
    assert message is not None
    assert (message.id(), message.type(), message.source()) == ("7", "order", "shop")
    subscription.respond_success(message)
    subscription.close()


def test_an_unknown_pubsub_is_refused(dapr: DaprClient) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        dapr.publish_event("nowhere", "orders", "x")
    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal.value.details() == "pubsub nowhere is not found"
