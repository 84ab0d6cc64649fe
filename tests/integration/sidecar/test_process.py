"""The sidecar as a process: how it starts and ends, whom it lets in, which files it takes."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient
from dapr.ext.workflow._durabletask.internal import orchestrator_service_pb2_grpc as task_hub
from dapr.ext.workflow._durabletask.internal import protos as pb
from dapr.proto import api_service_v1, api_v1, common_v1
from sidecar_helpers import eventually
from sidecar_workflows import make_runtime

from dapr_runners.sidecar import EmbeddedSidecar, SidecarStartError

UNKNOWN = pb.GetInstanceRequest(instanceId="unknown")


def _hub(channel: grpc.Channel) -> Any:
    return task_hub.TaskHubSidecarServiceStub(channel)


def _save(channel: grpc.Channel, store: str = "statestore") -> Any:
    items = [common_v1.StateItem(key="key", value=b"value")]
    stub: Any = api_service_v1.DaprStub(channel)
    return stub.SaveState(api_v1.SaveStateRequest(store_name=store, states=items), timeout=60)


def _http(port: int, path: str, token: str | None = None) -> int:
    headers = {"dapr-api-token": token} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _code(call: Any, *arguments: Any, **more: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as refusal:
        call(*arguments, **more)
    return refusal.value.code()


@pytest.mark.skipif(os.name == "nt", reason="it has no such rights")
def test_its_files_are_for_who_made_them_alone(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "db" / "a.db") as sidecar:
        with grpc.insecure_channel(sidecar.address) as channel:
            _save(channel)
        files = [path for path in sidecar.path.parent.iterdir() if path.suffix != ".lock"]
        assert len(files) >= 2
        assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_a_request_that_is_too_large_is_cut_off(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "a.db") as sidecar:
        client = socket.create_connection(("127.0.0.1", sidecar.http_port), timeout=60)
        with client, contextlib.suppress(ConnectionError):  # it hangs up in the middle
            client.sendall(b"GET /v1.0/healthz HTTP/1.1\r\nx: " + b"x" * 1_000_000)
            assert client.recv(1) == b""
        assert _http(sidecar.http_port, "/v1.0/healthz") == 204


def test_it_is_healthy_and_keeps_its_ports(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "new" / "sidecar.db") as sidecar:
        ports = sidecar.grpc_port, sidecar.http_port
        assert sidecar.address == f"127.0.0.1:{sidecar.grpc_port}"
        for _ in range(2):
            assert _http(sidecar.http_port, "/v1.0/healthz") == 204
            assert _http(sidecar.http_port, "/v1.0/healthz/outbound") == 204
            assert _http(sidecar.http_port, "/v1.0/nothing") == 404
            sidecar.restart()
            assert (sidecar.grpc_port, sidecar.http_port) == ports


def test_its_variables(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "a.db", app_id="app", api_token="secret") as sidecar:
        assert sidecar.env() == {
            "APP_ID": "app",
            "DAPR_GRPC_PORT": str(sidecar.grpc_port),
            "DAPR_HTTP_PORT": str(sidecar.http_port),
            "DAPR_API_TOKEN": "secret",
        }


def test_it_listens_on_loopback_only(sidecar: EmbeddedSidecar) -> None:
    table = Path("/proc/net/tcp")
    if not table.exists():
        pytest.skip("no /proc/net/tcp to read")
    ports = {f"{sidecar.grpc_port:04X}", f"{sidecar.http_port:04X}"}
    rows = [row.split() for row in table.read_text().splitlines()[1:]]
    listening = [row[1] for row in rows if row[3] == "0A" and row[1].partition(":")[2] in ports]
    assert {address.partition(":")[0] for address in listening} == {"0100007F"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(sidecar: EmbeddedSidecar, number: signal.Signals) -> None:
    assert sidecar.pid is not None
    os.kill(sidecar.pid, number)
    assert sidecar.wait(60) == 0


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from dapr_runners.sidecar import EmbeddedSidecar\n"
        f"print(EmbeddedSidecar({str(tmp_path / 'a.db')!r}).start().pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _alive(pid)
        parent.kill()
    eventually(lambda: not _alive(pid), "the sidecar's end")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_database_has_one_sidecar(sidecar: EmbeddedSidecar) -> None:
    with pytest.raises(SidecarStartError, match="held by another embedded sidecar"):
        EmbeddedSidecar(sidecar.path).start()


def test_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    other, text = tmp_path / "other.db", tmp_path / "text.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE precious (value)")
    db.close()
    text.write_text("not a database, but precious too" * 100)
    for path in (other, text):
        before = path.read_bytes()
        with pytest.raises(SidecarStartError, match="not a database of this embedded sidecar"):
            EmbeddedSidecar(path).start()
        assert path.read_bytes() == before


def test_a_port_in_use(sidecar: EmbeddedSidecar, tmp_path: Path) -> None:
    with pytest.raises(SidecarStartError, match="gRPC port"):
        EmbeddedSidecar(tmp_path / "b.db", grpc_port=sidecar.grpc_port).start()
    with pytest.raises(SidecarStartError, match="HTTP port"):
        EmbeddedSidecar(tmp_path / "c.db", http_port=sidecar.http_port).start()


def test_only_the_right_token_lets_in(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "a.db", api_token="secret") as sidecar:
        assert _http(sidecar.http_port, "/v1.0/healthz/outbound") == 204
        assert _http(sidecar.http_port, "/v1.0/metadata") == 401
        assert _http(sidecar.http_port, "/v1.0/metadata", "secret") == 200
        unauthenticated = grpc.StatusCode.UNAUTHENTICATED
        with grpc.insecure_channel(sidecar.address) as channel:
            hub = _hub(channel)
            for metadata in (None, [("dapr-api-token", "wrong")], [("dapr-api-token", "")]):
                assert _code(hub.GetInstance, UNKNOWN, metadata=metadata) is unauthenticated
                stream = hub.GetWorkItems(pb.GetWorkItemsRequest(), metadata=metadata)
                assert _code(next, stream) is unauthenticated
            assert _code(_save, channel) is unauthenticated
            right = [("dapr-api-token", "secret")]
            assert not hub.GetInstance(UNKNOWN, metadata=right).exists


def test_without_a_worker_instances_cannot_be_reached(sidecar: EmbeddedSidecar) -> None:
    with grpc.insecure_channel(sidecar.address) as channel:
        hub = _hub(channel)
        assert not hub.GetInstance(UNKNOWN).exists
        assert (
            _code(hub.RaiseEvent, pb.RaiseEventRequest(instanceId="a", name="b"))
            is grpc.StatusCode.FAILED_PRECONDITION
        )
        start = pb.CreateInstanceRequest(instanceId="a", name="sequence")
        # It waits for a worker, and leaves nothing behind when its caller gives up.
        assert _code(hub.StartInstance, start, timeout=1) is grpc.StatusCode.DEADLINE_EXCEEDED
        assert not hub.GetInstance(pb.GetInstanceRequest(instanceId="a")).exists


def test_a_schedule_waits_for_a_worker(sidecar: EmbeddedSidecar) -> None:
    with grpc.insecure_channel(sidecar.address) as channel:
        start = pb.CreateInstanceRequest(instanceId="early", name="sequence")
        waiting = _hub(channel).StartInstance.future(start)
        runtime = make_runtime("127.0.0.1", sidecar.grpc_port)
        runtime.start()
        try:
            assert waiting.result(timeout=60).instanceId == "early"
        finally:
            runtime.shutdown()


def _components(directory: Path, **stores: bool) -> Path:
    directory.mkdir()
    for name, actors in stores.items():
        (directory / f"{name}.yaml").write_text(
            "apiVersion: dapr.io/v1alpha1\nkind: Component\n"
            f"metadata: {{name: {name}}}\n"
            "spec:\n  type: state.redis\n  version: v1\n  metadata:\n"
            f"  - {{name: actorStateStore, value: '{str(actors).lower()}'}}\n"
        )
    return directory


def test_components_name_the_stores(tmp_path: Path) -> None:
    resources = _components(tmp_path / "resources", orders=True, cache=False)
    with (
        EmbeddedSidecar(tmp_path / "a.db", resources_path=resources) as sidecar,
        grpc.insecure_channel(sidecar.address) as channel,
    ):
        _save(channel, "orders")
        _save(channel, "cache")
        assert _code(_save, channel, "statestore") is grpc.StatusCode.INVALID_ARGUMENT
        assert not _hub(channel).GetInstance(UNKNOWN).exists


@pytest.mark.parametrize("stores", [{}, {"cache": False}])
def test_workflows_need_an_actor_store(tmp_path: Path, stores: dict[str, bool]) -> None:
    resources = _components(tmp_path / "resources", **stores)
    with EmbeddedSidecar(tmp_path / "a.db", resources_path=resources) as sidecar:
        client = DaprWorkflowClient(host="127.0.0.1", port=str(sidecar.grpc_port))
        with pytest.raises(grpc.RpcError) as refusal:
            client.schedule_new_workflow("sequence", input=1)
        client.close()
        assert refusal.value.code() is grpc.StatusCode.INTERNAL
        assert "not configured to use the actor runtime" in refusal.value.details()


def test_a_scope_hides_a_component(tmp_path: Path) -> None:
    resources = _components(tmp_path / "resources", orders=True)
    with (resources / "orders.yaml").open("a") as file:
        file.write("scopes: [other-app]\n")
    with (
        EmbeddedSidecar(tmp_path / "a.db", resources_path=resources) as sidecar,
        grpc.insecure_channel(sidecar.address) as channel,
    ):
        assert _code(_save, channel, "orders") is grpc.StatusCode.FAILED_PRECONDITION


@pytest.mark.parametrize("text", ["kind: [", "kind: Component\nmetadata: {name: a}\n"])
def test_a_bad_resource_file_is_named(tmp_path: Path, text: str) -> None:
    resources = _components(tmp_path / "resources")
    (resources / "bad.yaml").write_text(text)
    with pytest.raises(SidecarStartError, match=r"bad\.yaml"):
        EmbeddedSidecar(tmp_path / "a.db", resources_path=resources).start()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SidecarStartError, match=r"Not a directory|exists"):
        EmbeddedSidecar(tmp_path / "file" / "a.db").start()


def test_apps_do_not_see_each_others_keys(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    for app_id, before in (("one", b""), ("two", b""), ("one", b"value")):
        with (
            EmbeddedSidecar(database, app_id=app_id) as sidecar,
            grpc.insecure_channel(sidecar.address) as channel,
        ):
            stub: Any = api_service_v1.DaprStub(channel)
            request = api_v1.GetStateRequest(store_name="statestore", key="key")
            assert stub.GetState(request).data == before
            _save(channel)
    db = sqlite3.connect(database)
    keys = db.execute("SELECT key FROM state ORDER BY key").fetchall()
    db.close()
    assert keys == [("one||key",), ("two||key",)]
