"""Setups that are broken on purpose: the doctor names each, with its cause and what to do.

daprd's answers are those of 1.18.3; where one is installed, it is broken in the same ways in
test_doctor_daprd.py.
"""

import http.server
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
import pytest
from dapr.conf import settings
from doctor_helpers import problems
from fake_daprd import FakeDaprd, metadata

from dapr_runners.cli import _checks, _reach, _sidecar_checks
from dapr_runners.cli._checks import merged
from dapr_runners.engine import sidecar_metadata
from dapr_runners.sidecar import EmbeddedSidecar

pytestmark = pytest.mark.timeout(240)

NO_PLACEMENT = "placement: disconnected"


@pytest.fixture(autouse=True)
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their import takes seconds, and test_doctor.py has it."""
    monkeypatch.setattr("dapr_runners.cli._doctor.begin_frameworks", lambda: lambda: iter(()))


@pytest.fixture(autouse=True)
def without_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sidecar_checks, "_SETTLE_SECONDS", 0.3)


def told_of(told: dict[str, Any], **more: Any) -> dict[str, Any]:
    with FakeDaprd(told, **more) as daprd:
        return problems(daprd.port)


def test_nothing_is_broken() -> None:
    with FakeDaprd() as daprd:
        assert problems(daprd.port, status=0) == {}


# 1. no placement


def test_a_placement_service_that_is_away() -> None:
    found = told_of(metadata(actorRuntime={"runtimeStatus": "RUNNING", "placement": NO_PLACEMENT}))
    assert list(found) == ["placement"]
    assert "does not reach the placement service" in found["placement"]["text"]
    assert "--placement-host-address" in found["placement"]["remedy"]


def test_a_sidecar_that_was_started_without_placement() -> None:
    found = told_of(
        metadata(actorRuntime={"runtimeStatus": "DISABLED", "placement": NO_PLACEMENT}),
        refusals={
            "GetInstance": (grpc.StatusCode.UNAVAILABLE, "placement service is not configured")
        },
    )
    assert list(found) == ["placement"]
    assert "started without a placement service" in found["placement"]["text"]
    assert "give daprd --placement-host-address" in found["placement"]["remedy"]


# 2. no scheduler


def test_no_scheduler_service() -> None:
    found = told_of(metadata(scheduler={}))
    assert list(found) == ["scheduler"]
    assert "not connected to the scheduler service" in found["scheduler"]["text"]
    assert "--scheduler-host-address" in found["scheduler"]["remedy"]


def test_a_scheduler_service_that_has_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_sidecar_checks, "_SCHEDULER_SECONDS", 0.3)
    # daprd goes on to list it, and does not answer what it would have to ask it.
    found = told_of(metadata(), silent=frozenset({"GetJobAlpha1"}))
    assert list(found) == ["scheduler"]
    assert "127.0.0.1:50006 does not answer" in found["scheduler"]["text"]
    assert "start the scheduler service" in found["scheduler"]["remedy"]


# 3. no actorStateStore

NO_ACTORS = """
apiVersion: dapr.io/v1alpha1
kind: Component
metadata: {name: statestore}
spec: {type: state.sqlite, version: v1, metadata: []}
"""


def test_no_actor_store(tmp_path: Path) -> None:
    (tmp_path / "store.yaml").write_text(NO_ACTORS)
    with EmbeddedSidecar(tmp_path / "sidecar.db", resources_path=tmp_path) as sidecar:
        expect_no_actor_store(problems(sidecar.grpc_port))


def test_no_actor_store_in_the_words_of_daprd() -> None:
    detail = (
        "failed to load workflow metadata: api error: code = Internal desc = the state store is not"
        " configured to use the actor runtime. Have you set the - name: actorStateStore value:"
        ' "true" in your state store component file?'
    )
    refusals = {"GetInstance": (grpc.StatusCode.INTERNAL, detail)}
    expect_no_actor_store(told_of(metadata(), refusals=refusals))


def expect_no_actor_store(found: dict[str, Any]) -> None:
    assert list(found) == ["actor store"]
    assert "no state store of the sidecar" in found["actor store"]["text"]
    assert 'actorStateStore: "true"' in found["actor store"]["remedy"]


# 4. store down

REFUSED = "dial tcp 127.0.0.1:6379: connect: connection refused"


def test_the_store_is_down() -> None:
    detail = f"fail to get key from state store statestore: {REFUSED}"
    found = told_of(metadata(), refusals={"GetState": (grpc.StatusCode.INTERNAL, detail)})
    assert list(found) == ["state store"]
    assert REFUSED in found["state store"]["text"]
    assert "does not reach it" in found["state store"]["text"]
    assert "start the store" in found["state store"]["remedy"]


def test_the_store_of_the_workflows_is_down() -> None:
    refusal = grpc.StatusCode.UNKNOWN, f"failed to load workflow metadata: {REFUSED}"
    found = told_of(metadata(), refusals={"GetInstance": refusal})
    assert list(found) == ["actor store"]
    assert REFUSED in found["actor store"]["text"]
    assert "start that store" in found["actor store"]["remedy"]


def test_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dapr_runners.cli._stores._SECONDS", 0.5)
    found = told_of(metadata(), silent=frozenset({"GetState"}))
    assert "state store" in found


# 5. token wrong


class BrokenOffError(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "Socket closed"


def test_a_connection_that_broke_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [BrokenOffError(), BrokenOffError()]

    def flaky(address: str, seconds: float) -> Any:
        if broken:
            raise broken.pop()
        return sidecar_metadata(address, seconds)

    monkeypatch.setattr("dapr_runners.engine.sidecar_metadata", flaky)
    with FakeDaprd() as daprd:
        assert problems(daprd.port, status=0) == {}
    assert not broken


@pytest.mark.parametrize(
    ("given", "cause"),
    [("wrong", "is not its own"), (None, "DAPR_API_TOKEN is not set here")],
)
def test_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, cause: str
) -> None:
    with EmbeddedSidecar(tmp_path / "sidecar.db", api_token="right") as sidecar:
        monkeypatch.delenv("DAPR_API_TOKEN", raising=False)
        if given:
            monkeypatch.setenv("DAPR_API_TOKEN", given)
        found = problems(sidecar.grpc_port)
        assert list(found) == ["token"]
        assert cause in found["token"]["text"]
        assert "set DAPR_API_TOKEN" in found["token"]["remedy"]
        monkeypatch.setenv("DAPR_API_TOKEN", "right")
        monkeypatch.setattr(settings, "DAPR_API_TOKEN", "right")  # SDK 1.18 has read it by now
        assert problems(sidecar.grpc_port, status=0) == {}


# 6. versions that are not supported (those of the frameworks: test_doctor.py)


def test_an_old_daprd() -> None:
    found = told_of(metadata(runtimeVersion="1.16.4"))
    assert list(found) == ["sidecar"]
    assert "daprd 1.16.4 is not supported" in found["sidecar"]["text"]
    assert "1.18.3" in found["sidecar"]["remedy"]


@pytest.mark.parametrize("runtime", ["1.18.3", "1.19.0", "1.19.0-rc.1", "edge"])
def test_a_daprd_that_will_do(runtime: str) -> None:
    with FakeDaprd(metadata(runtimeVersion=runtime)) as daprd:
        assert problems(daprd.port, status=0) == {}


def test_an_old_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_checks, "_version", {"dapr": "1.16.0"}.get)
    with FakeDaprd() as daprd:
        found = problems(daprd.port)
    assert list(found) == ["dapr SDK"]
    assert "dapr 1.16.0 is not supported" in found["dapr SDK"]["text"]
    assert found["dapr SDK"]["remedy"] == "pip install 'dapr[workflow]>=1.19,<1.20'"


# 7. message limit too small


def test_a_sidecar_that_takes_too_small_messages(tmp_path: Path) -> None:
    with EmbeddedSidecar(tmp_path / "sidecar.db", max_body_size="1Mi") as sidecar:
        found = problems(sidecar.grpc_port)
    assert list(found) == ["messages"]
    assert "1048576" in found["messages"]["text"]
    assert "--max-body-size 4Mi" in found["messages"]["remedy"]


@pytest.mark.parametrize(
    ("limit", "cause"),
    [
        (1_000_000, "takes messages of up to 1000000 bytes"),
        (8 * 1024 * 1024, "sends messages of more than the 8388608 bytes"),
    ],
)
def test_a_worker_that_takes_too_small_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, cause: str
) -> None:
    monkeypatch.setattr("dapr_runners.engine.receive_limit", lambda: limit)
    with EmbeddedSidecar(tmp_path / "sidecar.db", max_body_size="16Mi") as sidecar:
        found = problems(sidecar.grpc_port)
    assert list(found) == ["messages"]
    assert cause in found["messages"]["text"]
    assert "DAPR_GRPC_MAX_INBOUND_MESSAGE_SIZE_BYTES" in found["messages"]["remedy"]


def test_the_limit_of_a_worker() -> None:
    program = "from dapr_runners.engine import receive_limit; print(receive_limit())"
    # SDK 1.18 does not heed the variable: the runners lift its limit, whatever it says.
    heeded = "123456" if merged(version("dapr")) else "None"
    for limit, expected in (("0", "None"), ("123456", heeded)):
        told = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "DAPR_GRPC_MAX_INBOUND_MESSAGE_SIZE_BYTES": limit},
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.split() == [expected]


# 8. port taken


@contextmanager
def web_server() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def another_grpc_server() -> Iterator[int]:
    with FakeDaprd(refusals={"GetMetadata": (grpc.StatusCode.UNIMPLEMENTED, "")}) as server:
        yield server.port


@contextmanager
def silent_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("server", [web_server, another_grpc_server])
def test_a_port_that_something_else_has(server: Callable[[], Any]) -> None:
    with server() as port:
        found = problems(port)
    assert list(found) == ["port"]
    assert f"127.0.0.1:{port} is taken by something" in found["port"]["text"]
    assert "--dapr-grpc-port" in found["port"]["remedy"]


def test_a_port_that_gives_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reach, "_ANSWER_SECONDS", 0.5)
    with silent_server() as port:
        found = problems(port)
    assert list(found) == ["sidecar"]
    assert f"what listens at 127.0.0.1:{port} takes connections" in found["sidecar"]["text"]


def test_a_port_that_nobody_has() -> None:
    with silent_server() as port:
        pass
    found = problems(port)
    assert list(found) == ["sidecar"]
    assert f"nothing listens at 127.0.0.1:{port}" in found["sidecar"]["text"]
    assert "dapr-runners run" in found["sidecar"]["remedy"]


def run_on(*options: str, cwd: Path) -> str:
    """What `dapr-runners run` says, which does not start its program."""
    command = [str(Path(sys.executable).with_name("dapr-runners")), "run", *options]
    done = subprocess.run(
        [*command, "--", sys.executable, "-c", "print('started')"],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("kind", ["gRPC", "HTTP"])
def test_a_taken_port_to_run_on(tmp_path: Path, kind: str) -> None:
    option = f"--dapr-{kind.lower()}-port"
    with silent_server() as port:
        assert run_on(option, str(port), cwd=tmp_path) == (
            "The embedded sidecar on .dapr-runners/runner.db did not start, so nothing can run. The"
            f" {kind} port {port} cannot be had: Address already in use. Most likely another"
            " program has it, such as a sidecar that still runs. Stop that one, or give this"
            f" sidecar another port: {option} 0 takes a free one."
        )


# 9. SQLite's path not writable (that of a daprd: test_doctor_resources.py)


def test_a_state_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory" / "runner.db").mkdir(parents=True)
    for place, reason in (("file", "File exists"), ("directory", "Is a directory")):
        told = run_on("--state-dir", place, cwd=tmp_path)
        assert f"The database {place}/runner.db cannot be written: " in told
        assert reason in told
        assert "put it elsewhere with --state-dir" in told


@pytest.mark.parametrize(
    "detail",
    [
        "attempt to write a readonly database (8)",
        "unable to open database file: out of memory (14)",
    ],
)
def test_a_file_that_cannot_be_written_any_more(detail: str) -> None:
    detail = f"failed saving state in state store statestore: {detail}"
    found = told_of(metadata(), refusals={"SaveState": (grpc.StatusCode.INTERNAL, detail)})
    assert "Its file cannot be written" in found["state store"]["text"]
    assert "the right to write the file" in found["state store"]["remedy"]
