"""What ``dapr-runners doctor`` says, as its tests look at it."""

import json
from typing import Any

from typer.testing import CliRunner

from dapr_runners.cli._app import app


def findings(port: int, *options: str, status: int) -> list[dict[str, Any]]:
    """What is found at a port. Whatever is wrong has a cause and a remedy."""
    result = CliRunner().invoke(
        app, ["doctor", "--json", "--dapr-grpc-port", str(port), *options], catch_exceptions=False
    )
    told = json.loads(result.stdout)
    assert result.exit_code == status
    assert told["ok"] is (status == 0)
    for each in told["findings"]:
        assert each["text"]
        assert bool(each["remedy"]) is (each["status"] != "ok")
    return told["findings"]


def problems(port: int, *options: str, status: int = 1) -> dict[str, Any]:
    """Those findings that are problems, by subject."""
    told = findings(port, *options, status=status)
    found = {each["subject"]: each for each in told if each["status"] == "problem"}
    assert bool(found) is (status == 1)
    return found
