"""The component files, as they are, on a real Dapr, with the worker killed in the middle."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dapr_real import Dapr, Daprd, free_port
from dapr_runners.cli._app import app
from dapr_store import NoStoreError, Server, store_named

pytestmark = pytest.mark.timeout(360)
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "simple_graph"
KEPT_PASSWORD = "kept by reference"


@pytest.fixture(params=["sqlite", "redis", "postgresql"])
def daprd(request: pytest.FixtureRequest, dapr: Dapr, tmp_path: Path) -> Iterator[Daprd]:
    """A daprd with the files of a folder, and the Configuration for production."""
    name: str = request.param
    port = free_port()
    try:
        store = store_named(name, tmp_path)
    except NoStoreError as error:
        pytest.skip(str(error))
    server = store.server(port)
    resources = tmp_path / "resources"
    place = ROOT / "components" / store.components
    shutil.copytree(place, resources, ignore=lambda _, names: {"redis", "postgresql", "config"})
    variables: dict[str, str] = {}
    with ExitStack() as stack:
        for path in resources.glob("pubsub.yaml"):
            # A daprd may be built without this broker.
            path.write_text(path.read_text().replace("spec:\n", "spec:\n  ignoreErrors: true\n"))
        if server is not None:
            if name == "redis":
                command = [*server.command, "--requirepass", KEPT_PASSWORD]
                server = Server(command, lambda: takes_connections(port))
                variables["REDIS_PASSWORD"] = KEPT_PASSWORD
                host = store.metadata("")["redisHost"]
                for path in resources.glob("*.yaml"):
                    path.write_text(path.read_text().replace("localhost:6379", host))
            service = dapr.store_service(server, tmp_path / "store.log")
            service.start()
            stack.callback(service.kill)
        if name == "postgresql":
            told = store.metadata("app")["connectionString"]
            variables["POSTGRESQL_CONNECTION"] = told
        if name == "sqlite":
            path = resources / "statestore.yaml"
            text = path.read_text().replace("dapr-runners.db", str(tmp_path / "dapr-runners.db"))
            path.write_text(text)
        config = yaml.safe_load((ROOT / "components/config/production.yaml").read_text())
        # mDNS, the default, would announce the tests on the network.
        config["spec"]["nameResolution"] = {"component": "kubernetes", "version": "v1"}
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        made = dapr.sidecar(
            tmp_path / "daprd",
            "langgraph-agent",
            resources=resources,
            options={"--config": str(tmp_path / "config.yaml")},
            NAMESPACE="default",
            **variables,
        )
        try:
            stack.enter_context(made)
        except RuntimeError:
            skip_without_the_store(made)
            raise
        yield made


def skip_without_the_store(daprd: Daprd) -> None:
    """It may be told before it is ready, and after."""
    if "couldn't find state store" in daprd.log.read_text():
        pytest.skip("this daprd was built without this store")


def takes_connections(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    return False


def agent(daprd: Daprd, **more: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-u", "agent.py"],
        cwd=EXAMPLE,
        env={**os.environ, **daprd.env()},
        stdout=subprocess.PIPE,
        text=True,
        **more,
    )


def test_a_killed_worker_goes_on(daprd: Daprd, monkeypatch: pytest.MonkeyPatch) -> None:
    first = agent(daprd)
    assert first.stdout is not None
    planned = next((line for line in first.stdout if line.startswith("step_planned")), None)
    if planned is None:
        skip_without_the_store(daprd)
    assert planned is not None
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    second = agent(daprd)
    told, _ = second.communicate()
    assert second.returncode == 0
    assert "'processed hello', 'validated', 'done'], 'counter': 3}" in told
    monkeypatch.setenv("DAPR_GRPC_PORT", str(daprd.grpc_port))
    monkeypatch.setattr("dapr_runners.cli._doctor.begin_frameworks", lambda: lambda: iter(()))
    checked = CliRunner().invoke(app, ["doctor"])
    assert checked.exit_code == 0, checked.output
    assert "warning" not in checked.output
