"""The short form of `make soak`."""

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent.parent


@pytest.mark.timeout(900)
def test_a_minute_of_kills() -> None:
    command = [sys.executable, "-m", "chaos.soak", "--minutes", "0.8", "--at-least", "300"]
    # In so short a time a third of it is a few sizes of a file. Without retention it would be 1.67.
    command += ["--seed", "7", "--growth", "1.5"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert done.stdout.rstrip().endswith("6 of 6 bars met")
