"""How large things may be, and what becomes of a workflow that goes over it."""

from typing import Any

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient
from dapr.ext.workflow._durabletask.internal import protos as pb
from sidecar_helpers import NewId, Run, eventually, finished, reaches


def test_a_large_result(run: Run) -> None:
    assert run("blobs", [3_900_000]) == ("COMPLETED", "3900000")


def test_a_result_over_the_message_size_fails_the_activity(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("blobs", input=[5_000_000])
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "FAILED"
    assert state.failure_details is not None
    assert "exceeds gRPC max message size" in state.failure_details.message


@pytest.mark.parametrize("sizes", [[4_150_000], [1_000_000] * 6])
def test_a_history_over_the_message_size_stalls(
    client: DaprWorkflowClient, run: Run, sizes: list[int]
) -> None:
    instance_id = client.schedule_new_workflow("blobs", input=sizes)
    reaches(client, instance_id, "STALLED")
    # Others are not held up, and the stalled one takes nothing but a forced purge.
    assert run("sequence", 1) == ("COMPLETED", "[0]")
    for call in (
        lambda: client.raise_workflow_event(instance_id, "go"),
        lambda: client.pause_workflow(instance_id),
        lambda: client.terminate_workflow(instance_id),
        lambda: client.purge_workflow(instance_id, recursive=False),
    ):
        with pytest.raises(grpc.RpcError, match="actor is stalled"):
            call()


def test_a_stalled_instance_can_be_purged_by_force(client: DaprWorkflowClient, hub: Any) -> None:
    instance_id = client.schedule_new_workflow("blobs", input=[4_150_000])
    reaches(client, instance_id, "STALLED")
    hub.PurgeInstances(pb.PurgeInstancesRequest(instanceId=instance_id, force=True), timeout=60)
    assert client.get_workflow_state(instance_id) is None


def test_an_input_under_two_mebibytes(run: Run) -> None:
    assert run("large_input", 2_050_000) == ("COMPLETED", '"swallowed"')


def test_an_input_over_two_mebibytes_is_never_scheduled(
    client: DaprWorkflowClient, run: Run, new_id: NewId, hub: Any
) -> None:
    # daprd tries again every second, for ever, and says nothing to the caller.
    instance_id = client.schedule_new_workflow("large_input", input=3_000_000, instance_id=new_id())
    assert run("sequence", 1) == ("COMPLETED", "[0]")
    eventually(lambda: len(client.get_workflow_history(instance_id)) == 3)
    client.terminate_workflow(instance_id)
    assert finished(client, instance_id)[0] == "TERMINATED"


def test_a_large_output(run: Run) -> None:
    status, output = run("large_output", 3_900_000)
    assert status == "COMPLETED"
    assert len(output) == 3_900_002


def test_an_output_over_the_message_size_fails(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("large_output", input=5_000_000)
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "FAILED"
    assert state.failure_details is not None
    assert "Orchestrator response exceeds" in state.failure_details.message


def test_a_workflow_input_over_the_message_size_is_refused(
    client: DaprWorkflowClient, new_id: NewId
) -> None:
    with pytest.raises(grpc.RpcError) as refusal:
        client.schedule_new_workflow("sequence", input="x" * 5_000_000, instance_id=new_id())
    assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
