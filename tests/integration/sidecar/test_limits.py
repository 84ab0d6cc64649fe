"""Concurrency limits of a Configuration file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from sidecar_helpers import WorkerProcess, eventually, finished, lines

from dapr_runners.sidecar import EmbeddedSidecar, SidecarStartError


def _configuration(path: Path, workflow: str) -> Path:
    path.write_text(
        "apiVersion: dapr.io/v1alpha1\nkind: Configuration\nmetadata: {name: limits}\n"
        f"spec:\n  workflow: {workflow}\n"
    )
    return path


@pytest.mark.parametrize(
    "limit",
    [
        "{maxConcurrentActivityInvocations: 3}",
        "{activityConcurrencyLimits: [{name: journal, maxConcurrent: 3}]}",
    ],
)
def test_no_more_activities_at_once_than_allowed(
    tmp_path: Path, start_worker: Callable[[int], WorkerProcess], limit: str
) -> None:
    config = _configuration(tmp_path / "config.yaml", limit)
    with EmbeddedSidecar(tmp_path / "sidecar.db", config=config) as sidecar:
        start_worker(sidecar.grpc_port)
        start_worker(sidecar.grpc_port)
        client = DaprWorkflowClient(host="127.0.0.1", port=str(sidecar.grpc_port))
        journal, gate = tmp_path / "journal", tmp_path / "gate"
        entries = [{"name": f"a{n}", "journal": str(journal), "gate": str(gate)} for n in range(10)]
        instance_id = client.schedule_new_workflow("journaled_at_once", input=entries)
        eventually(lambda: len(lines(journal)) >= 3)
        other = client.schedule_new_workflow("journaled_at_once", input=entries[:1])
        gate.touch()
        assert finished(client, instance_id)[0] == finished(client, other)[0] == "COMPLETED"
        client.close()
        running = most = 0
        for line in lines(journal):
            running += 1 if line.startswith("begin") else -1
            most = max(most, running)
        assert most == 3


def test_a_limit_that_is_no_number(tmp_path: Path) -> None:
    config = _configuration(tmp_path / "config.yaml", "{maxConcurrentActivityInvocations: many}")
    with pytest.raises(SidecarStartError, match=r"config\.yaml"):
        EmbeddedSidecar(tmp_path / "sidecar.db", config=config).start()
