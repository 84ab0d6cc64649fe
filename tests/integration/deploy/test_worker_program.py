"""deploy/worker.py, the program of a pod, as Kubernetes sees it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from engines import Sidecar

pytestmark = pytest.mark.timeout(240)
ROOT = Path(__file__).parents[3]


def is_well(probe: str, sidecar: Sidecar) -> bool:
    command = ["doctor", "--probe", probe, "--dapr-grpc-port", str(sidecar.grpc_port)]
    return CliRunner().invoke(app, command).exit_code == 0


def test_it_becomes_ready_and_ends_when_it_is_told(sidecar: Sidecar) -> None:
    assert not is_well("ready", sidecar)
    while is_well("live", sidecar):
        pass  # a sidecar that has just begun is not yet one that its worker should be on
    graphs = str(ROOT / "examples" / "simple_graph")
    program = subprocess.Popen(
        [sys.executable, "worker.py"],
        cwd=ROOT / "deploy",
        env={**os.environ, **sidecar.env(), "PYTHONPATH": graphs},
    )
    while not is_well("ready", sidecar):
        assert program.poll() is None
    assert is_well("live", sidecar)
    program.send_signal(signal.SIGTERM)
    assert program.wait() == 0
