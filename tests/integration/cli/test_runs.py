"""``dapr-runners runs``."""

from typing import Any

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from langgraph.func import entrypoint
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.sidecar import EmbeddedSidecar

pytestmark = pytest.mark.skipif(
    not hasattr(DaprWorkflowClient, "iter_workflow_instance_ids"),
    reason="this SDK's client cannot list",
)


@entrypoint()
def double(number: int) -> int:
    if number < 0:
        raise ValueError("too small")
    return 2 * number


@pytest.fixture
def three_runs(sidecar: EmbeddedSidecar) -> list[str]:
    """Ids of three runs, the oldest first."""
    runner = DaprWorkflowGraphRunner(double, name="double", port=sidecar.grpc_port)
    runner.start()
    for number in range(3):
        assert runner.invoke(number, thread_id=f"t{number}") == 2 * number
    runner.shutdown()
    client = DaprWorkflowClient(host="127.0.0.1", port=str(sidecar.grpc_port))
    found = [client.get_workflow_state(one) for one in client.iter_workflow_instance_ids()]
    client.close()
    return [one.instance_id for one in sorted(found, key=lambda one: one.created_at)]


def listed(*options: str) -> Any:
    return CliRunner().invoke(app, ["runs", *options])


def test_the_newest_come_first(three_runs: list[str]) -> None:
    lines = listed().output.splitlines()
    assert [line.split()[0] for line in lines] == three_runs[::-1]
    assert {line.split()[1] for line in lines} == {"COMPLETED"}
    newest = listed("--limit", "1").output.split()
    assert newest[0] == three_runs[-1]


def test_those_of_a_status(three_runs: list[str]) -> None:
    assert len(listed("--status", "COMPLETED").output.splitlines()) == 3
    assert listed("--status", "RUNNING").output == ""


def test_no_sidecar(sidecar: EmbeddedSidecar, caplog: pytest.LogCaptureFixture) -> None:
    sidecar.stop()
    result = listed()
    assert result.exit_code == 1
    assert caplog.record_tuples == []
    assert f"No Dapr sidecar answers at {sidecar.address}" in result.output
