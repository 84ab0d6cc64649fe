"""A worker and a client on the shared sidecar."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient, WorkflowRuntime
from dapr.ext.workflow._durabletask.internal import orchestrator_service_pb2_grpc as task_hub
from sidecar_helpers import Endpoint, NewId, Run, WorkerProcess
from sidecar_workflows import make_runtime

from dapr_runners.sidecar import EmbeddedSidecar


@pytest.fixture
def sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedSidecar]:
    """An embedded one: it is what these tests are about."""
    with EmbeddedSidecar(tmp_path / "sidecar" / "sidecar.db") as running:
        for name, value in running.env().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def start_worker() -> Iterator[Callable[[int], WorkerProcess]]:
    """Starts worker processes on a gRPC port; all are gone after the test."""
    workers: list[WorkerProcess] = []

    def start(grpc_port: int) -> WorkerProcess:
        workers.append(WorkerProcess(grpc_port))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture(scope="session")
def runtime(endpoint: Endpoint) -> Iterator[WorkflowRuntime]:
    """A worker in this process."""
    runtime = make_runtime("127.0.0.1", endpoint.grpc_port)
    runtime.start()
    yield runtime
    runtime.shutdown()


@pytest.fixture(scope="session")
def client(endpoint: Endpoint, runtime: WorkflowRuntime) -> Iterator[DaprWorkflowClient]:
    """A client of a sidecar that has a worker."""
    client = DaprWorkflowClient(host="127.0.0.1", port=str(endpoint.grpc_port))
    yield client
    client.close()


@pytest.fixture(scope="session")
def hub(endpoint: Endpoint) -> Iterator[Any]:
    """The workflow service itself, for what the SDK hides."""
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(endpoint.address, unlimited) as channel:
        yield task_hub.TaskHubSidecarServiceStub(channel)


@pytest.fixture
def new_id() -> NewId:
    """Makes instance ids nobody else uses."""
    return lambda: f"test-{uuid4().hex}"


@pytest.fixture
def run(client: DaprWorkflowClient) -> Run:
    """Runs a workflow to its end; returns its status and its output."""

    def run(name: str, value: Any = None, instance_id: str | None = None) -> tuple[str, Any]:
        started = client.schedule_new_workflow(name, input=value, instance_id=instance_id)
        state = client.wait_for_workflow_completion(started, timeout_in_seconds=60)
        assert state is not None
        return state.runtime_status.name, state.serialized_output

    return run
