"""Programs that end, with and without having stopped their runner."""

import subprocess
import sys
from pathlib import Path

import pytest
from run_helpers import Place

pytestmark = pytest.mark.timeout(60)
_PROGRAM = Path(__file__).with_name("exiting_program.py")
_LIMIT = 8.0
"""Seconds for a whole program: the SDK's threads alone would keep one for over ten."""


def end_of(place: Place, way: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-W", "error", str(_PROGRAM), str(place.grpc_port), way]
    return subprocess.run(command, timeout=_LIMIT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("way", ["returns", "with", "async with", "in a step", "in an async step"])
def test_it_ends_at_once(place: Place, way: str) -> None:
    ended = end_of(place, way)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_it_ends_at_once_with_its_exception(place: Place) -> None:
    ended = end_of(place, "raises")
    assert ended.returncode == 1
    assert ended.stderr.endswith("ValueError: the program's own\n")
