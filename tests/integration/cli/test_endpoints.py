"""Commands find the sidecar that they are told of, and say what is wrong with it."""

from pathlib import Path

import pytest
from cli_helpers import command, run

from dapr_runners.sidecar import EmbeddedSidecar

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize(
    ("token", "code", "said"), [("right", 0, ""), ("wrong", 4, "refused the API token")]
)
def test_an_endpoint_with_a_token(tmp_path: Path, token: str, code: int, said: str) -> None:
    with EmbeddedSidecar(tmp_path / "sidecar.db", api_token="right") as sidecar:
        where = ("--endpoint", sidecar.address, "--token", token)
        with command("list", *where, DAPR_GRPC_PORT="1", DAPR_API_TOKEN="other") as process:
            _, errors = process.communicate()
    assert process.returncode == code
    assert said in errors
    assert "Traceback" not in errors


def test_variables_name_the_endpoint(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "sidecar.db", api_token="right") as sidecar:
        where = {"DAPR_GRPC_ENDPOINT": f"http://{sidecar.address}", "DAPR_API_TOKEN": "right"}
        where["PYTHONWARNINGS"] = "ignore:http and https schemes"  # SDK 1.18's own, of each http
        with command("list", "--json", **where) as process:
            assert process.communicate() == ("[]\n", "")
    assert process.returncode == 0


def test_one_sidecar_is_named() -> None:
    said = run("list", "--endpoint", "host:1", "--dapr-grpc-port", "1", code=2)
    assert "one of --endpoint and --dapr-grpc-port" in said
