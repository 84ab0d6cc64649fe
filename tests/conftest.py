"""Fixtures for every test: a sidecar of its own, or one that tests share."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import pytest
from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.sidecar import EmbeddedSidecar

_SINCE_1_19 = ("get_workflow_history", "iter_workflow_instance_ids", "rerun_workflow_from_event")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # SDK 1.18 is supported and tested too, as far as its client goes.
    missing = {name for name in _SINCE_1_19 if not hasattr(DaprWorkflowClient, name)}
    for item in items:
        if isinstance(item, pytest.Function):
            lacked = missing.intersection(_names(item.function.__code__))
            if lacked:
                item.add_marker(pytest.mark.skip(f"this SDK's client has no {min(lacked)}"))


def _names(code: CodeType) -> Iterator[str]:
    """What a function and the functions in it refer to."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@pytest.fixture
def sidecar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddedSidecar]:
    """An embedded sidecar on an empty database, found through the usual variables.

    The Dapr SDK reads those when it is imported, so pass it host and port all the same.
    """
    with EmbeddedSidecar(tmp_path / "sidecar" / "sidecar.db") as running:
        monkeypatch.delenv("DAPR_GRPC_ENDPOINT", raising=False)
        monkeypatch.delenv("DAPR_HTTP_ENDPOINT", raising=False)
        for name, value in running.env().items():
            monkeypatch.setenv(name, value)
        yield running


@dataclass(frozen=True)
class Endpoint:
    """A running sidecar, of whatever kind."""

    host: str
    grpc_port: int
    http_port: int

    @property
    def address(self) -> str:
        return f"{self.host}:{self.grpc_port}"


@pytest.fixture(scope="session", params=["embedded", "daprd"])
def endpoint(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Endpoint]:
    """The embedded sidecar and, where one is running, a real daprd. Tests share it: use own ids.

    TEST_DAPR_GRPC_PORT and TEST_DAPR_HTTP_PORT name the daprd, with a state store ``statestore``.
    """
    if request.param == "daprd":
        if "TEST_DAPR_GRPC_PORT" not in os.environ:
            pytest.skip("no real Dapr: TEST_DAPR_GRPC_PORT names none")
        yield Endpoint(
            "127.0.0.1",
            int(os.environ["TEST_DAPR_GRPC_PORT"]),
            int(os.environ["TEST_DAPR_HTTP_PORT"]),
        )
        return
    with EmbeddedSidecar(tmp_path_factory.mktemp("sidecar") / "sidecar.db") as running:
        yield Endpoint("127.0.0.1", running.grpc_port, running.http_port)
