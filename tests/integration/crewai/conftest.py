"""Runners for tests, on a sidecar that only these tests share."""

import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engines import Engine
from quiet_crewai import settle

settle()
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # CrewAI's own
    import crewai  # noqa: F401

Make = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # CrewAI warns of itself, of pydantic and of its own dependencies.
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def port(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The gRPC port of a sidecar. Tests share it: use new names."""
    with engine.sidecar(tmp_path_factory.mktemp("crewai")) as running:
        yield running.grpc_port


@pytest.fixture
def make(port: int) -> Iterator[Make]:
    """Makes a runner and starts it: ``make(class, what it runs, **options)``."""
    runners: list[Any] = []

    def make_runner(kind: Any, source: Any, **options: Any) -> Any:
        options.setdefault("name", f"crewai-{uuid4().hex[:12]}")
        runners.append(kind(source, port=port, **options))
        runners[-1].start()
        return runners[-1]

    yield make_runner
    for runner in runners:
        runner.shutdown()
