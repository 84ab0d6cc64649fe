"""What Kubernetes asks of a worker by ``dapr-runners doctor --probe``."""

import pytest
from doctor_helpers import problems
from fake_daprd import FakeDaprd, metadata
from test_doctor_workers import worker_of

from engines import Sidecar, until_nobody_works

pytestmark = pytest.mark.timeout(240)
READY, LIVE = ("--probe", "ready"), ("--probe", "live")
NO_PLACEMENT = {"runtimeStatus": "RUNNING", "placement": "placement: disconnected"}


def test_a_worker_comes_and_goes(sidecar: Sidecar) -> None:
    with worker_of(sidecar, "orders"):
        assert problems(sidecar.grpc_port, *READY, status=0) == {}
        assert problems(sidecar.grpc_port, *LIVE, status=0) == {}
    until_nobody_works(sidecar)
    for probe in (READY, LIVE):
        found = problems(sidecar.grpc_port, *probe)
        assert list(found) == ["worker"]
        assert "no worker is connected" in found["worker"]["text"]


def test_a_sidecar_that_cannot_run_workflows_is_no_fault_of_its_worker() -> None:
    for workers in ({}, {"connectedWorkers": 1}):
        with FakeDaprd(metadata(actorRuntime=NO_PLACEMENT, workflows=workers)) as daprd:
            found = problems(daprd.port, *READY)
            assert "not connected to the placement service" in found["engine"]["text"]
            assert ("worker" in found) is (not workers)
            assert problems(daprd.port, *LIVE, status=0) == {}


def test_a_sidecar_that_is_away_is_no_fault_of_its_worker() -> None:
    with FakeDaprd() as daprd:
        port = daprd.port
    assert list(problems(port, *READY)) == ["sidecar"]
    assert problems(port, *LIVE, status=0) == {}
