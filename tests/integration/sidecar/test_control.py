"""Terminate, suspend, resume, purge: what they do, and in which state they are refused."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient
from sidecar_helpers import NewId, Run, eventually, lines, reaches


def _status(client: DaprWorkflowClient, instance_id: str) -> str:
    state = client.get_workflow_state(instance_id)
    assert state is not None
    return state.runtime_status.name


def _refused(call: Any, *arguments: Any, **keywords: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as refusal:
        call(*arguments, **keywords)
    return refusal.value.code(), refusal.value.details()


def _taken(call: Any, instance_id: str) -> bool:
    """Whether ``call`` was, and not refused as daprd refuses it while it lets go of a workflow."""
    try:
        call(instance_id)
    except grpc.RpcError as error:
        if "actor is closed" not in str(error):
            raise
        return False
    return True


def test_terminate(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="go")
    client.terminate_workflow(instance_id, output="bye")
    state = client.get_workflow_state(instance_id)
    assert state is not None
    assert state.runtime_status.name == "TERMINATED"
    assert state.serialized_output == '"bye"'


def test_terminate_does_not_wait_for_an_activity(
    client: DaprWorkflowClient, tmp_path: Path, new_id: NewId
) -> None:
    journal, gate = tmp_path / "journal", tmp_path / "gate"
    entry = {"name": "a", "journal": str(journal), "gate": str(gate)}
    instance_id = client.schedule_new_workflow("journaled", input=[entry], instance_id=new_id())
    eventually(lambda: lines(journal))
    client.terminate_workflow(instance_id)
    assert _status(client, instance_id) == "TERMINATED"
    try:
        with pytest.raises(grpc.RpcError) as refused:
            client.schedule_new_workflow("sequence", input=1, instance_id=instance_id)
    finally:
        gate.touch()
    assert refused.value.code() is grpc.StatusCode.UNKNOWN
    assert refused.value.details() == (
        "failed to create workflow instance: a terminated workflow with ID "
        f"'{instance_id}' is already awaiting an activity result"
    )
    eventually(lambda: len(lines(journal)) == 2)

    def is_free() -> bool:
        try:
            client.schedule_new_workflow("sequence", input=1, instance_id=instance_id)
        except grpc.RpcError:
            return False
        return True

    eventually(is_free)
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.serialized_output == "[0]"
    client.purge_workflow(instance_id)
    assert client.get_workflow_state(instance_id) is None


def test_a_purged_id_is_free_whatever_an_activity_does(
    client: DaprWorkflowClient, tmp_path: Path, new_id: NewId
) -> None:
    journal, gate = tmp_path / "journal", tmp_path / "gate"
    entry = {"name": "a", "journal": str(journal), "gate": str(gate)}
    instance_id = client.schedule_new_workflow("journaled", input=[entry], instance_id=new_id())
    eventually(lambda: lines(journal))
    try:
        client.terminate_workflow(instance_id)
        client.purge_workflow(instance_id)
        client.schedule_new_workflow("sequence", input=1, instance_id=instance_id)
        state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    finally:
        gate.touch()
    assert state is not None
    assert state.serialized_output == "[0]"


def test_suspend_and_resume(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="go")
    client.pause_workflow(instance_id)
    assert _status(client, instance_id) == "SUSPENDED"
    client.raise_workflow_event(instance_id, "go", data=5)
    assert _status(client, instance_id) == "SUSPENDED"
    client.resume_workflow(instance_id)
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.serialized_output == "5"


def test_suspend_lets_an_activity_end(client: DaprWorkflowClient, tmp_path: Path) -> None:
    journal, gate = tmp_path / "journal", tmp_path / "gate"
    entries = [{"name": n, "journal": str(journal), "gate": str(gate)} for n in "ab"]
    instance_id = client.schedule_new_workflow("journaled", input=entries)
    eventually(lambda: lines(journal))
    client.pause_workflow(instance_id)
    gate.touch()
    eventually(lambda: len(lines(journal)) == 2)
    assert _status(client, instance_id) == "SUSPENDED"
    client.resume_workflow(instance_id)
    state = client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    assert state is not None
    assert state.serialized_output == '["a", "b"]'
    assert len(lines(journal)) == 4


def test_terminate_while_suspended(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="go")
    client.pause_workflow(instance_id)
    client.terminate_workflow(instance_id)
    assert _status(client, instance_id) == "TERMINATED"


def test_resume_of_one_that_is_not_suspended_fails_it(client: DaprWorkflowClient) -> None:
    # The SDK's own reading of the event. A runner must never do this.
    instance_id = client.schedule_new_workflow("waiting", input="go")
    client.resume_workflow(instance_id)
    state = reaches(client, instance_id, "FAILED")
    assert state.failure_details.error_type == "WorkflowStateError"


def test_a_finished_workflow_ignores_them_all(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("sequence", input=0)
    client.wait_for_workflow_completion(instance_id, timeout_in_seconds=60)
    for tell in (client.terminate_workflow, client.pause_workflow, client.resume_workflow):
        eventually(lambda tell=tell: _taken(tell, instance_id))
    assert _status(client, instance_id) == "COMPLETED"


def test_purge_leaves_nothing(client: DaprWorkflowClient, run: Run, new_id: NewId) -> None:
    instance_id = new_id()
    run("sequence", 1, instance_id)
    client.purge_workflow(instance_id)
    assert client.get_workflow_state(instance_id) is None
    assert instance_id not in list(client.iter_workflow_instance_ids())


def test_purge_of_an_active_workflow_is_refused(client: DaprWorkflowClient) -> None:
    instance_id = client.schedule_new_workflow("waiting", input="go")
    assert _refused(client.purge_workflow, instance_id) == (
        grpc.StatusCode.UNKNOWN,
        "failed to purge workflow state: orchestration has not yet completed",
    )
    client.terminate_workflow(instance_id)
    client.purge_workflow(instance_id)


def test_unknown_instances(client: DaprWorkflowClient, new_id: NewId) -> None:
    unknown, missing = new_id(), "no such instance exists"
    assert client.get_workflow_state(unknown) is None
    assert _refused(client.raise_workflow_event, unknown, "go") == (
        grpc.StatusCode.UNKNOWN,
        missing,
    )
    assert _refused(client.pause_workflow, unknown) == (grpc.StatusCode.UNKNOWN, missing)
    assert _refused(client.resume_workflow, unknown) == (grpc.StatusCode.UNKNOWN, missing)
    for call in (client.terminate_workflow, client.purge_workflow):
        code, detail = _refused(call, unknown)
        assert code is grpc.StatusCode.UNKNOWN
        assert detail.endswith(missing)
    code, detail = _refused(client.get_workflow_history, unknown)
    assert (code, detail) == (
        grpc.StatusCode.NOT_FOUND,
        f"workflow instance '{unknown}' not found",
    )


def test_waiting_for_an_unknown_instance_goes_on(client: DaprWorkflowClient, new_id: NewId) -> None:
    with pytest.raises(TimeoutError):
        client.wait_for_workflow_completion(new_id(), timeout_in_seconds=1)
