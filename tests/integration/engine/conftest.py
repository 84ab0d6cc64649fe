"""Runners for tests, on a sidecar that only these tests share."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from place import Place
from run_helpers import MakeRunner

from dapr_runners.langgraph import DaprWorkflowGraphRunner
from engines import Engine


@pytest.fixture(scope="session")
def place(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A sidecar whose work no other test's worker takes. Tests share it: use new names."""
    with engine.sidecar(tmp_path_factory.mktemp("engine")) as running:
        yield Place(running)


@pytest.fixture
def build_runner(place: Place) -> Iterator[MakeRunner]:
    """Makes runners that are not started; all are gone after the test."""
    made: list[DaprWorkflowGraphRunner] = []

    def build(graph: Any, **options: Any) -> DaprWorkflowGraphRunner:
        options.setdefault("name", f"test-{uuid4().hex[:12]}")
        made.append(DaprWorkflowGraphRunner(graph, port=place.grpc_port, **options))
        return made[-1]

    yield build
    for runner in reversed(made):
        runner.shutdown()
        runner.store.close()


@pytest.fixture
def make_runner(build_runner: MakeRunner) -> MakeRunner:
    """Makes runners that work."""

    def make(graph: Any, **options: Any) -> DaprWorkflowGraphRunner:
        runner = build_runner(graph, **options)
        runner.start()
        return runner

    return make


@pytest.fixture
def wait_for_end(place: Place) -> Iterator[Callable[[str], str]]:
    """Waits until nobody works on a run any more; gives the status of its workflow."""
    client = DaprWorkflowClient(host="127.0.0.1", port=str(place.grpc_port))

    def wait(run_id: str) -> str:
        state = client.wait_for_workflow_completion(run_id, timeout_in_seconds=60)
        assert state is not None
        return state.runtime_status.name

    yield wait
    client.close()
