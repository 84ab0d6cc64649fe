"""Instance ids: one active instance an id, and when an id may be used again."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient
from sidecar_helpers import NewId, Run, finished, reaches


def _schedule(client: DaprWorkflowClient, name: str, value: Any, instance_id: str) -> str | None:
    """None where the id is taken."""
    try:
        return client.schedule_new_workflow(name, input=value, instance_id=instance_id)
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.ALREADY_EXISTS
        assert f"an active workflow with ID '{instance_id}' already exists" in error.details()
        return None


@pytest.mark.parametrize("suspended", [False, True])
def test_the_id_of_an_active_instance_is_taken(
    client: DaprWorkflowClient, new_id: NewId, suspended: bool
) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="go", instance_id=new_id())
    if suspended:
        client.pause_workflow(instance_id)
    assert _schedule(client, "sequence", 1, instance_id) is None
    client.terminate_workflow(instance_id)


def test_of_racing_schedulers_one_wins(client: DaprWorkflowClient, new_id: NewId) -> None:
    instance_id = new_id()
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(
            pool.map(lambda _: _schedule(client, "waiting", "go", instance_id), range(8))
        )
    assert sorted(outcomes, key=str) == [None] * 7 + [instance_id]
    client.terminate_workflow(instance_id)


def test_the_id_of_a_finished_instance_is_free(
    client: DaprWorkflowClient, run: Run, new_id: NewId
) -> None:
    for name, value in (("sequence", 0), ("raising", "x")):
        instance_id = new_id()
        run(name, value, instance_id)
        assert run("sequence", 2, instance_id) == ("COMPLETED", "[0, 1]")
        # Nothing is left of the one before.
        state = client.get_workflow_state(instance_id)
        assert state is not None
        assert state.failure_details is None
        assert state.serialized_custom_status is None
        assert state.serialized_input == "2"


def test_execution_ids_differ_when_an_id_is_used_again(run: Run, new_id: NewId) -> None:
    instance_id = new_id()
    first = run("retried", 5, instance_id)
    second = run("retried", 5, instance_id)
    assert first[0] == second[0] == "COMPLETED"
    assert first != second


def test_an_id_is_not_free_while_a_child_is_active(
    client: DaprWorkflowClient, new_id: NewId
) -> None:
    instance_id, child_id = new_id(), new_id()
    child = {"workflow": "waiting", "input": "go", "id": child_id}
    client.schedule_new_workflow("parent", input=child, instance_id=instance_id)
    reaches(client, child_id, "RUNNING")
    client.terminate_workflow(instance_id, recursive=False)
    with pytest.raises(grpc.RpcError) as refusal:
        client.schedule_new_workflow("sequence", input=1, instance_id=instance_id)
    assert refusal.value.code() is grpc.StatusCode.ALREADY_EXISTS
    assert f"cannot recreate workflow with ID '{instance_id}'" in refusal.value.details()
    client.terminate_workflow(child_id)
    client.schedule_new_workflow("sequence", input=1, instance_id=instance_id)
    assert finished(client, instance_id) == ("COMPLETED", "[0]")
