"""Child workflows: results, failures, ids, and what is done to a parent's children."""

import json

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient
from sidecar_helpers import NewId, Run, finished, reaches


def test_a_child_returns_its_result(run: Run) -> None:
    assert run("parent", {"workflow": "sequence", "input": 3}) == ("COMPLETED", "[0, 1, 2]")


def test_children_at_once(run: Run) -> None:
    assert run("parents", 6) == ("COMPLETED", json.dumps([list(range(n)) for n in range(6)]))


def test_a_child_that_continues_as_new_still_has_its_parent(run: Run, new_id: NewId) -> None:
    child = {"workflow": "numbered_generations", "input": {"n": 0, "seen": []}, "id": new_id()}
    status, output = run("parent", child)
    assert status == "COMPLETED"
    assert len(json.loads(output)) == 6


def test_a_failing_child_fails_its_parent(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow(
        "parent", input={"workflow": "raising", "input": "child trouble"}
    )
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "FAILED"
    assert state.failure_details is not None
    assert "child trouble" in state.failure_details.message


def test_a_child_whose_id_is_taken_fails(client: DaprWorkflowClient, new_id: NewId) -> None:
    taken = client.schedule_new_workflow("waiting", input="go", instance_id=new_id())
    instance_id = client.schedule_new_workflow(
        "parent", input={"workflow": "sequence", "input": 1, "id": taken}
    )
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "FAILED"
    assert state.failure_details is not None
    assert f"an active workflow with ID '{taken}' already exists" in state.failure_details.message
    client.terminate_workflow(taken)


def test_a_terminated_child_fails_its_parent(client: DaprWorkflowClient, new_id: NewId) -> None:
    child_id = new_id()
    instance_id = client.schedule_new_workflow(
        "parent", input={"workflow": "waiting", "input": "go", "id": child_id}
    )
    reaches(client, child_id, "RUNNING")
    client.terminate_workflow(child_id)
    assert finished(client, instance_id)[0] == "FAILED"


@pytest.mark.parametrize("recursive", [True, False])
def test_terminate_reaches_children_if_asked_to(
    client: DaprWorkflowClient, new_id: NewId, recursive: bool
) -> None:
    child_id = new_id()
    instance_id = client.schedule_new_workflow(
        "parent", input={"workflow": "waiting", "input": "go", "id": child_id}
    )
    reaches(client, child_id, "RUNNING")
    client.terminate_workflow(instance_id, recursive=recursive)
    if recursive:
        reaches(client, child_id, "TERMINATED")
        return
    client.raise_workflow_event(child_id, "go", data=1)
    assert finished(client, child_id) == ("COMPLETED", "1")


@pytest.mark.parametrize("recursive", [True, False])
def test_purge_reaches_children_if_asked_to(
    client: DaprWorkflowClient, run: Run, new_id: NewId, recursive: bool
) -> None:
    instance_id, child_id = new_id(), new_id()
    run("parent", {"workflow": "sequence", "input": 1, "id": child_id}, instance_id)
    client.purge_workflow(instance_id, recursive=recursive)
    assert client.get_workflow_state(instance_id) is None
    assert (client.get_workflow_state(child_id) is None) == recursive


def test_recursive_purge_wants_every_child_finished(
    client: DaprWorkflowClient, new_id: NewId
) -> None:
    instance_id, child_id = new_id(), new_id()
    child = {"workflow": "waiting", "input": "go", "id": child_id}
    client.schedule_new_workflow("parent", input=child, instance_id=instance_id)
    reaches(client, child_id, "RUNNING")
    client.terminate_workflow(instance_id, recursive=False)
    with pytest.raises(grpc.RpcError, match="orchestration has not yet completed"):
        client.purge_workflow(instance_id, recursive=True)
    assert client.get_workflow_state(instance_id) is not None
    client.terminate_workflow(child_id)
    client.purge_workflow(instance_id, recursive=True)
    assert client.get_workflow_state(child_id) is None
