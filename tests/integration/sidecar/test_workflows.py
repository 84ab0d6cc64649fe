"""What a workflow can do, through the public SDK."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from dapr.ext.workflow import DaprWorkflowClient, WorkflowRuntime
from dapr.ext.workflow.aio import DaprWorkflowClient as AsyncWorkflowClient
from sidecar_helpers import Endpoint, Run


def test_activities_in_sequence(run: Run) -> None:
    assert run("sequence", 5) == ("COMPLETED", "[0, 1, 2, 3, 4]")


def test_activities_in_parallel(run: Run) -> None:
    assert run("fan_out", 40) == ("COMPLETED", json.dumps(list(range(40))))


def test_a_workflow_without_activities(run: Run) -> None:
    assert run("sequence", 0) == ("COMPLETED", "[]")


def test_a_retried_activity_keeps_its_execution_id(run: Run) -> None:
    status, output = run("retried", 5)
    first, second = json.loads(output)
    assert status == "COMPLETED"
    assert first != second


def test_retries_end(client: DaprWorkflowClient, run: Run) -> None:
    status, output = run("retried", 2)
    assert (status, output) == ("FAILED", None)


def test_a_failing_activity_fails_the_workflow(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("failing_activity", input="no luck")
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "FAILED"
    assert state.failure_details is not None
    assert state.failure_details.error_type == "TaskFailedError"
    assert "no luck" in state.failure_details.message
    # As daprd below 1.19 has it, so does the sidecar: the message is in the details only.
    assert state.serialized_output is None


def test_a_raising_workflow_fails(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("raising", input="nope")
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "FAILED"
    assert state.failure_details is not None
    assert state.failure_details.error_type == "ValueError"
    assert state.failure_details.message == "nope"
    assert state.serialized_custom_status == "about to raise"


def test_an_unknown_workflow_fails(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("nobody_knows")
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "FAILED"
    assert state.failure_details is not None
    assert state.failure_details.error_type == "OrchestratorNotRegisteredError"


def test_a_timer(run: Run) -> None:
    assert run("sleeping", 0.2) == ("COMPLETED", '"woken"')


def test_a_timer_in_the_past(run: Run) -> None:
    assert run("sleeping", -5) == ("COMPLETED", '"woken"')


def test_many_timers(client: DaprWorkflowClient) -> None:
    ids = [client.schedule_new_workflow("sleeping", input=0.3 - n / 100) for n in range(30)]
    for instance_id in ids:
        state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
        assert state is not None
        assert state.runtime_status.name == "COMPLETED"


def test_execution_ids_differ_over_generations(run: Run) -> None:
    status, output = run("numbered_generations", {"n": 0, "seen": []})
    assert status == "COMPLETED"
    assert len(set(json.loads(output))) == 6


def test_ending_with_work_under_way(run: Run) -> None:
    assert run("left_behind") == ("COMPLETED", '"left"')


def test_a_start_at_a_given_time(client: DaprWorkflowClient) -> None:
    start_at = datetime.now(UTC) + timedelta(seconds=4)
    instance_id = client.schedule_new_workflow("sequence", input=1, start_at=start_at)
    state = client.get_workflow_state(instance_id)
    assert state is not None
    assert state.runtime_status.name == "PENDING"
    done = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert done is not None
    assert done.serialized_output == "[0]"
    assert datetime.now(UTC) >= start_at


def test_an_event_starts_a_workflow_before_its_time(client: DaprWorkflowClient) -> None:
    start_at = datetime.now(UTC) + timedelta(hours=1)
    instance_id = client.schedule_new_workflow("waiting", input="go", start_at=start_at)
    client.raise_workflow_event(instance_id, "go", data=7)
    done = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert done is not None
    assert done.serialized_output == "7"


def test_waiting_for_the_start(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="go")
    state = client.wait_for_workflow_start(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.runtime_status.name == "RUNNING"
    assert state.name == "waiting"
    client.terminate_workflow(instance_id)


async def test_the_asynchronous_client(endpoint: Endpoint, runtime: WorkflowRuntime) -> None:
    client = AsyncWorkflowClient(host="127.0.0.1", port=str(endpoint.grpc_port))
    instance_id = await client.schedule_new_workflow("sequence", input=2)
    state = await client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert (state.runtime_status.name, state.serialized_output) == ("COMPLETED", "[0, 1]")


@pytest.mark.parametrize("count", [50])
def test_many_workflows_at_once(client: DaprWorkflowClient, count: int) -> None:
    ids = [client.schedule_new_workflow("sequence", input=3) for _ in range(count)]
    for instance_id in ids:
        state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
        assert state is not None
        assert state.serialized_output == "[0, 1, 2]"
