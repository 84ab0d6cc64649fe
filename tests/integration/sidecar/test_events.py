"""External events: when they arrive, in which order, and what is lost of them."""

import json

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from sidecar_helpers import Run


def _completed(client: DaprWorkflowClient, instance_id: str) -> str | None:
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "COMPLETED"
    return state.serialized_output


def test_an_event_reaches_the_one_who_waits(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="go")
    client.raise_workflow_event(instance_id, "go", data={"ok": 1})
    assert _completed(client, instance_id) == '{"ok": 1}'


def test_names_of_events_are_case_insensitive(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="Approve")
    client.raise_workflow_event(instance_id, "aPPROVE", data=1)
    assert _completed(client, instance_id) == "1"


@pytest.mark.parametrize("data", [0, False, "", [], {}, None])
def test_a_falsy_event_arrives_as_none(client: DaprWorkflowClient, data: object) -> None:
    # What the SDK makes of it. Wrapped in a dict, it comes through.
    instance_id = client.schedule_new_workflow("waiting", input="go")
    client.raise_workflow_event(instance_id, "go", data=data)
    assert _completed(client, instance_id) is None


def test_a_hundred_events_keep_their_order(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting_for_many", input=100)
    for number in range(100):
        client.raise_workflow_event(instance_id, "item", data=number + 1)
    assert _completed(client, instance_id) == json.dumps(list(range(1, 101)))


def test_a_wait_times_out(run: Run) -> None:
    assert run("waiting_with_timeout", 0.2) == ("COMPLETED", '"timed out"')


def test_an_event_in_time(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting_with_timeout", input=60)
    client.raise_workflow_event(instance_id, "go", data="yes")
    assert _completed(client, instance_id) == '"yes"'


def test_an_event_stops_only_the_timer_of_its_own_wait(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("two_waits", input=0.3)
    client.raise_workflow_event(instance_id, "go", data=1)
    assert _completed(client, instance_id) == '[1, "timed out"]'


def test_events_are_carried_into_the_next_generation(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("generations", input={"n": 0, "got": []})
    for number in (1, 2, 3):
        client.raise_workflow_event(instance_id, "tick", data=number)
    assert _completed(client, instance_id) == "[1, 2, 3]"


def test_an_event_to_a_finished_workflow_is_lost(client: DaprWorkflowClient, run: Run) -> None:
    instance_id = client.schedule_new_workflow("sequence", input=0)
    assert _completed(client, instance_id) == "[]"
    client.raise_workflow_event(instance_id, "go", data=1)
    assert _completed(client, instance_id) == "[]"
