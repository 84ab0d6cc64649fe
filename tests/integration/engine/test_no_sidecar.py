"""What is said, at once, when the sidecar is not there or not right."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_helpers import Node, chain

from dapr_runners.engine import ActorStoreMissingError, Worker
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import SidecarUnreachableError, StateStore, UnauthorizedError

Begin = Callable[[Any], None]
begins = pytest.mark.parametrize(
    "begin",
    [DaprWorkflowGraphRunner.start, DaprWorkflowGraphRunner.connect],
    ids=["start", "connect"],
)


def runner_at(port: int) -> DaprWorkflowGraphRunner:
    """A runner with a worker of its own: other tests' processes know nothing of it."""
    address = f"127.0.0.1:{port}"
    return DaprWorkflowGraphRunner(
        chain(Node("node")),
        name="alone",
        store=StateStore(address=address),
        worker=Worker(address),
    )


@begins
def test_no_sidecar(begin: Begin, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        runner = runner_at(port)
        with pytest.raises(SidecarUnreachableError) as told:
            begin(runner)
    assert f"127.0.0.1:{port}" in str(told.value)
    assert "dapr-runners run" in str(told.value)
    assert not runner.is_running
    # A traceback shows nothing but this error.
    assert told.value.__suppress_context__ and told.value.__cause__ is None
    assert told.value.detail
    assert caplog.record_tuples == []


@begins
def test_a_wrong_token(begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAPR_API_TOKEN", "wrong")
    with EmbeddedSidecar(tmp_path / "sidecar.db", api_token="right") as sidecar:
        runner = runner_at(sidecar.grpc_port)
        with pytest.raises(UnauthorizedError) as told:
            begin(runner)
    assert sidecar.address in str(told.value)
    assert "DAPR_API_TOKEN" in str(told.value)


STATE_WITHOUT_ACTORS = """
apiVersion: dapr.io/v1alpha1
kind: Component
metadata: {name: statestore}
spec:
  type: state.sqlite
  version: v1
  metadata: [{name: connectionString, value: "unused"}]
"""


@begins
def test_no_actor_state_store(begin: Begin, tmp_path: Path) -> None:
    resources = tmp_path / "components"
    resources.mkdir()
    (resources / "state.yaml").write_text(STATE_WITHOUT_ACTORS)
    database = tmp_path / "sidecar.db"
    with (
        EmbeddedSidecar(database, resources_path=resources) as sidecar,
        pytest.raises(ActorStoreMissingError) as told,
    ):
        begin(runner_at(sidecar.grpc_port))
    assert str(told.value) == (
        f"The sidecar at {sidecar.address} has no actor state store, so no workflow can run. Add "
        '`actorStateStore: "true"` to one state store component in its resources path '
        "(components/ of dapr-runners has ready files) and restart it."
    )


def test_starting_again_once_the_sidecar_is_there(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "first.db") as first:
        port = first.grpc_port
    runner = runner_at(port)
    with pytest.raises(SidecarUnreachableError):
        runner.start()
    with EmbeddedSidecar(tmp_path / "second.db", grpc_port=port):
        runner.start()
        assert runner.invoke({"x": 1}) == {"x": 1, "log": ["node"]}
        runner.shutdown()
