"""Fixtures for every test: a sidecar of its own, or one that tests share."""

from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from hypothesis import HealthCheck, settings

from dapr_real import Dapr, find_dapr
from engines import EmbeddedEngine, Engine, Sidecar

# An example takes as long as a busy machine takes.
_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("any-machine", _ANY_MACHINE)
settings.load_profile("any-machine")

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


@pytest.fixture(scope="session")
def dapr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dapr]:
    """A real Dapr, where one is installed."""
    found = find_dapr()
    if isinstance(found, str):
        pytest.skip(found)
    with Dapr(found, tmp_path_factory.mktemp("dapr")) as made:
        yield made


# One test tells that there is no Dapr (test_real_dapr.py): a thousand would say nothing more.
@pytest.fixture(
    scope="session", params=["embedded", *(["daprd"] if isinstance(find_dapr(), Path) else [])]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    """The embedded sidecar and, where one is installed, a real Dapr."""
    return EmbeddedEngine() if request.param == "embedded" else request.getfixturevalue("dapr")


@pytest.fixture
def sidecar(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sidecar]:
    """A sidecar on an empty store, found through the usual variables.

    The Dapr SDK reads those when it is imported, so pass it host and port all the same.
    """
    with engine.sidecar(tmp_path / "sidecar") as running:
        monkeypatch.delenv("DAPR_GRPC_ENDPOINT", raising=False)
        monkeypatch.delenv("DAPR_HTTP_ENDPOINT", raising=False)
        for name, value in running.env().items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture(scope="session")
def endpoint(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """A sidecar that tests share: use own ids."""
    with engine.sidecar(tmp_path_factory.mktemp("sidecar")) as running:
        yield running
