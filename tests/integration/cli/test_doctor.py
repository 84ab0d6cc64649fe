"""``dapr-runners doctor`` on sidecars that are well, and on those that are not."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from engines import Sidecar


def doctor(*options: str) -> Any:
    return CliRunner().invoke(app, ["doctor", *options])


def test_all_is_well(sidecar: Sidecar) -> None:
    result = doctor()
    assert result.exit_code == 0
    assert "problem" not in result.output
    assert f"workflows     the sidecar at {sidecar.address} runs them" in result.output
    assert "state store   statestore: the first writer of a key wins" in result.output
    for framework in ("langgraph", "crewai"):
        told = next(line for line in result.output.splitlines() if framework in line.split()[1:2])
        assert "is supported" in told or "not installed" in told


def test_a_crewai_that_is_not_supported(sidecar: Sidecar, tmp_path: Path) -> None:
    (tmp_path / "crewai").mkdir()
    (tmp_path / "crewai" / "__init__.py").touch()
    (tmp_path / "crewai-0.1.dist-info").mkdir()
    (tmp_path / "crewai-0.1.dist-info" / "METADATA").write_text("Name: crewai\nVersion: 0.1\n")
    program = "from dapr_runners.cli._app import app; app()"
    result = subprocess.run(
        [sys.executable, "-c", program, "doctor"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "problem  crewai        0.1 is not supported: " in result.stdout
    assert "problem  langgraph" not in result.stdout


def test_no_sidecar(sidecar: Sidecar, caplog: pytest.LogCaptureFixture) -> None:
    sidecar.stop()
    result = doctor()
    assert result.exit_code == 1
    assert caplog.record_tuples == []
    assert f"problem  sidecar       nothing listens at {sidecar.address}" in result.output
    assert "dapr-runners run -- python app.py" in result.output


def test_a_store_that_is_not_there(sidecar: Sidecar) -> None:
    result = doctor("--store-name", "elsewhere")
    assert result.exit_code == 1
    assert "no state store named 'elsewhere'; it has statestore" in result.output
