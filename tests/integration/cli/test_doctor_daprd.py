"""The same setups as in test_doctor_broken.py, on a real Dapr, where one is installed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from dapr.conf import settings
from doctor_helpers import findings, problems
from test_doctor_workers import members, worker_of

from dapr_real import Dapr, Daprd, free_port
from dapr_store import NoStoreError, Redis

SHIPPED = Path(__file__).parents[3] / "components"
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dapr_runners.cli._doctor.begin_frameworks", lambda: lambda: iter(()))


@contextmanager
def sqlite_resources(place: Path, connection: str, actors: str = "true") -> Iterator[Path]:
    place.mkdir()
    spec = {
        "type": "state.sqlite",
        "version": "v1",
        "metadata": [
            {"name": "connectionString", "value": connection},
            {"name": "actorStateStore", "value": actors},
        ],
    }
    file = {"kind": "Component", "metadata": {"name": "statestore"}, "spec": spec}
    (place / "store.yaml").write_text(yaml.safe_dump({"apiVersion": "dapr.io/v1alpha1", **file}))
    yield place


def test_nothing_is_broken(dapr: Dapr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dapr.sidecar(tmp_path) as daprd:
        monkeypatch.setenv("NAMESPACE", daprd.app_id)
        told = findings(daprd.grpc_port, status=0)
    assert {each["status"] for each in told} == {"ok"}
    # Its resources path was found, and the Resiliency in it is for its app and namespace.
    assert any("for workflow and activity" in each["text"] for each in told)


@pytest.mark.parametrize(
    ("address", "cause"),
    [("", "started without a placement"), ("127.0.0.1:1", "does not reach the placement")],
)
def test_no_placement(dapr: Dapr, tmp_path: Path, address: str, cause: str) -> None:
    with dapr.sidecar(tmp_path, options={"--placement-host-address": address}) as daprd:
        found = problems(daprd.grpc_port)
    assert list(found) == ["placement"]
    assert cause in found["placement"]["text"]


@pytest.mark.parametrize("address", ["", "127.0.0.1:1"])
def test_no_scheduler(dapr: Dapr, tmp_path: Path, address: str) -> None:
    with dapr.sidecar(tmp_path, options={"--scheduler-host-address": address}) as daprd:
        found = problems(daprd.grpc_port)
    assert list(found) == ["scheduler"]
    assert "not connected to the scheduler" in found["scheduler"]["text"]


def test_a_scheduler_that_has_died(dapr: Dapr, tmp_path: Path) -> None:
    with dapr.sidecar(tmp_path) as daprd:
        assert problems(daprd.grpc_port, status=0) == {}
        dapr.scheduler.stop()
        try:
            found = problems(daprd.grpc_port)
        finally:
            dapr.scheduler.start()
    assert list(found) == ["scheduler"]


def test_no_actor_store(dapr: Dapr, tmp_path: Path) -> None:
    with (
        sqlite_resources(tmp_path / "resources", str(tmp_path / "a.db"), "false") as resources,
        dapr.sidecar(tmp_path / "daprd", resources=resources) as daprd,
    ):
        found = problems(daprd.grpc_port)
    assert list(found) == ["actor store"]
    assert 'actorStateStore: "true"' in found["actor store"]["remedy"]


def test_the_store_is_down(dapr: Dapr, tmp_path: Path) -> None:
    try:
        redis = Redis(tmp_path)
    except NoStoreError as error:
        pytest.skip(str(error))
    server = redis.server(free_port())
    assert server is not None
    store = dapr.store_service(server, tmp_path / "redis.log")
    store.start()
    try:
        resources = tmp_path / "resources"
        shutil.copytree(SHIPPED / "redis", resources, ignore=shutil.ignore_patterns("pubsub.yaml"))
        for file in resources.iterdir():
            host = redis.metadata("")["redisHost"]
            file.write_text(file.read_text().replace("localhost:6379", host))
        with dapr.sidecar(tmp_path / "daprd", resources=resources) as daprd:
            assert problems(daprd.grpc_port, status=0) == {}
            store.kill()
            found = problems(daprd.grpc_port)
    finally:
        store.kill()
    assert list(found) == ["state store"]
    assert "connection refused" in found["state store"]["text"]


def test_the_token(dapr: Dapr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dapr.sidecar(tmp_path, DAPR_API_TOKEN="right") as daprd:
        for token in ("", "wrong"):
            monkeypatch.setenv("DAPR_API_TOKEN", token)
            assert list(problems(daprd.grpc_port)) == ["token"]
        monkeypatch.setenv("DAPR_API_TOKEN", "right")
        monkeypatch.setattr(settings, "DAPR_API_TOKEN", "right")  # SDK 1.18 has read it by now
        assert problems(daprd.grpc_port, status=0) == {}


def test_the_size_of_messages(dapr: Dapr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with dapr.sidecar(tmp_path / "small", options={"--max-body-size": "1Mi"}) as daprd:
        found = problems(daprd.grpc_port)
        assert list(found) == ["messages"]
        assert "--max-body-size" in found["messages"]["remedy"]
    with dapr.sidecar(tmp_path / "large", options={"--max-body-size": "16Mi"}) as daprd:
        assert problems(daprd.grpc_port, status=0) == {}
        monkeypatch.setattr("dapr_runners.engine.receive_limit", lambda: 8 * 1024 * 1024)
        found = problems(daprd.grpc_port)
        assert list(found) == ["messages"]
        assert "DAPR_GRPC_MAX_INBOUND_MESSAGE_SIZE_BYTES" in found["messages"]["remedy"]


def test_its_http_port_in_place_of_its_grpc_port(dapr: Dapr, tmp_path: Path) -> None:
    with dapr.sidecar(tmp_path) as daprd:
        found = problems(daprd.http_port)
    assert list(found) == ["port"]
    assert "not --dapr-http-port" in found["port"]["remedy"]


def test_a_path_that_cannot_be_written(dapr: Dapr, tmp_path: Path) -> None:
    with sqlite_resources(tmp_path / "resources", str(tmp_path / "no" / "a.db")) as resources:
        daprd: Daprd = dapr.sidecar(tmp_path / "daprd", resources=resources)
        with suppress(RuntimeError):  # it may be healthy for a moment before it ends
            daprd.start()
        while "Fatal error from runtime" not in daprd.log.read_text():
            pass
        assert "unable to open database file" in daprd.log.read_text()
        daprd.stop()
        found = problems(daprd.grpc_port, "--resources-path", str(resources))
    assert list(found) == ["sqlite path", "sidecar"]


def test_two_programs_of_one_app_id(dapr: Dapr, tmp_path: Path) -> None:
    with (
        dapr.sidecar(tmp_path) as daprd,
        worker_of(daprd, "orders", "bills"),
        worker_of(daprd, "orders"),
    ):
        members(daprd, 2)
        assert list(problems(daprd.grpc_port)) == ["workers"]
