"""Listing instances, reading histories, and running again from an event."""

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient
from sidecar_helpers import NewId, Run, finished


def test_listing_finds_every_instance(client: DaprWorkflowClient, run: Run, new_id: NewId) -> None:
    mine = {new_id() for _ in range(5)}
    for instance_id in mine:
        run("sequence", 0, instance_id)
    assert mine <= set(client.iter_workflow_instance_ids())
    assert mine <= set(client.iter_workflow_instance_ids(page_size=2))


def test_history_tells_what_happened(client: DaprWorkflowClient, run: Run, new_id: NewId) -> None:
    instance_id = new_id()
    run("sequence", 2, instance_id)
    history = client.get_workflow_history(instance_id)
    assert [(event.event_type.value, event.event_id) for event in history] == [
        ("workflowStarted", -1),
        ("executionStarted", -1),
        ("taskScheduled", 1),
        ("workflowStarted", -1),
        ("taskCompleted", -1),
        ("taskScheduled", 2),
        ("workflowStarted", -1),
        ("taskCompleted", -1),
        ("executionCompleted", 3),
    ]


def test_history_holds_the_last_generation_only(
    client: DaprWorkflowClient, run: Run, new_id: NewId
) -> None:
    instance_id = new_id()
    run("numbered_generations", {"n": 0, "seen": []}, instance_id)
    kinds = [event.event_type.value for event in client.get_workflow_history(instance_id)]
    assert kinds.count("executionStarted") == 1
    assert kinds.count("taskCompleted") == 2


@pytest.mark.parametrize("event_id", [1, 2, 3])
def test_running_again_from_an_activity(
    client: DaprWorkflowClient, run: Run, new_id: NewId, event_id: int
) -> None:
    source, target = new_id(), new_id()
    run("sequence", 3, source)
    again = client.rerun_workflow_from_event(source, event_id, new_instance_id=target)
    assert again == target
    assert finished(client, target) == ("COMPLETED", "[0, 1, 2]")


def test_running_again_with_another_input(
    client: DaprWorkflowClient, run: Run, new_id: NewId
) -> None:
    source, target = new_id(), new_id()
    run("sequence", 3, source)
    client.rerun_workflow_from_event(source, 2, new_instance_id=target, input="other")
    assert finished(client, target) == ("COMPLETED", '[0, "other", 2]')


def test_what_cannot_be_run_again(client: DaprWorkflowClient, run: Run, new_id: NewId) -> None:
    source, active = new_id(), new_id()
    run("sequence", 1, source)
    client.schedule_new_workflow("waiting", input="go", instance_id=active)

    def refused(instance_id: str, event_id: int, target: str) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.RpcError) as refusal:
            client.rerun_workflow_from_event(instance_id, event_id, new_instance_id=target)
        return refusal.value.code(), refusal.value.details()

    code, detail = refused(source, 9, new_id())
    assert code is grpc.StatusCode.NOT_FOUND
    assert detail.endswith("does not have history event with ID '9'")
    code, detail = refused(source, 2, new_id())
    assert code is grpc.StatusCode.NOT_FOUND
    assert detail.endswith("is not an event that can be rerun")
    code, detail = refused(active, 1, new_id())
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert detail.endswith(f"'{active}' is not in a terminal state")
    code, detail = refused(source, 1, active)
    assert code is grpc.StatusCode.ALREADY_EXISTS
    client.terminate_workflow(active)
