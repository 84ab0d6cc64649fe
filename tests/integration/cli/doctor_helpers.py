"""What ``dapr-runners doctor`` says, as its tests look at it."""

import json
from typing import Any

from typer.testing import CliRunner

from dapr_runners.cli._app import app


def problems(port: int, *options: str, status: int = 1) -> dict[str, Any]:
    """The findings of kind "problem", by subject. Each has a cause and a remedy, and without any
    the exit code is 0."""
    result = CliRunner().invoke(
        app, ["doctor", "--json", "--dapr-grpc-port", str(port), *options], catch_exceptions=False
    )
    told = json.loads(result.stdout)
    found = {each["subject"]: each for each in told["findings"] if each["status"] == "problem"}
    assert result.exit_code == (1 if found else 0) == status
    assert told["ok"] is (not found)
    assert all(each["text"] and each["remedy"] for each in found.values())
    return found
