"""Programs that end, with and without having stopped their runner."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from place import Place

from worker_processes import STRICT

pytestmark = pytest.mark.timeout(240)
_PROGRAM = Path(__file__).with_name("exiting_program.py")
_LIMIT = 9.0
"""Seconds from the end of the main program to that of its process: with the SDK's threads alone it
would be over ten."""


def end_of(place: Place, way: str, *arguments: str) -> tuple[int, str]:
    """Exit status and standard error of the program, which ends soon after its last line."""
    command = [sys.executable, *STRICT, str(_PROGRAM), str(place.grpc_port), way, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ending\n"
            _, errors = process.communicate(timeout=_LIMIT)
        finally:
            process.kill()
    return process.returncode, errors


@pytest.mark.parametrize("way", ["returns", "with", "async with"])
def test_it_ends_at_once(place: Place, way: str) -> None:
    assert end_of(place, way) == (0, "")


@pytest.mark.parametrize("way", ["in a step", "in an async step"])
def test_it_ends_at_once_in_a_step(place: Place, way: str) -> None:
    assert end_of(place, way)[0] == 0


def test_it_ends_at_once_with_its_exception(place: Place) -> None:
    status, errors = end_of(place, "raises")
    assert status == 1
    assert errors.endswith("ValueError: the program's own\n")


def test_what_it_has_seen_end_has_ended(place: Place) -> None:
    """Nothing of it is left for the next worker."""
    run_id = f"seen-{uuid4().hex}"
    assert end_of(place, "returns", run_id) == (0, "")
    client = DaprWorkflowClient(host="127.0.0.1", port=str(place.grpc_port))
    state = client.get_workflow_state(run_id)
    client.close()
    assert state is not None and state.runtime_status.name == "COMPLETED"
