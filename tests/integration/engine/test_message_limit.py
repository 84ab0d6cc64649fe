"""A worker takes work items over 4 MiB, gRPC's own limit, which SDK 1.18 leaves as it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dapr.ext.workflow import DaprWorkflowClient, WorkflowRuntime

from dapr_runners.engine._sdk import lift_message_limit
from dapr_runners.sidecar import EmbeddedSidecar

SIZE, ACTIVITIES = 1_900_000, 3


@pytest.fixture
def wide_sidecar(tmp_path: Path) -> Iterator[EmbeddedSidecar]:
    """A sidecar that lets a history grow to 16 MiB."""
    with EmbeddedSidecar(tmp_path / "sidecar.db", max_body_size="16Mi") as running:
        yield running


def big(_ctx: Any, number: int) -> str:
    return str(number) * SIZE


def collect(ctx: Any, _input: Any) -> Any:
    total = 0
    for number in range(ACTIVITIES):
        total += len((yield ctx.call_activity(big, input=number)))
    return total


def test_a_history_over_four_mebibytes(wide_sidecar: EmbeddedSidecar) -> None:
    port = str(wide_sidecar.grpc_port)
    runtime = WorkflowRuntime(host="127.0.0.1", port=port)
    lift_message_limit(runtime)
    runtime.register_workflow(collect)
    runtime.register_activity(big)
    runtime.start()
    client = DaprWorkflowClient(host="127.0.0.1", port=port)
    try:
        client.schedule_new_workflow(collect, instance_id="wide")
        state = client.wait_for_workflow_completion("wide", timeout_in_seconds=60)
        assert state is not None
        assert state.serialized_output == str(SIZE * ACTIVITIES)
    finally:
        client.close()
        runtime.shutdown()
