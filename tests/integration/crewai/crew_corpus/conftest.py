"""A sidecar, and three worker processes that serve the whole corpus."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from dapr_runners.state import StateStore
from engines import Engine
from worker_processes import WorkerProcess

_FOLDER = Path(__file__).parent.parent
_QUIET = ("CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING", "OTEL_SDK_DISABLED")

for _name in _QUIET:
    os.environ[_name] = "true"  # nothing of the tests leaves the machine


@dataclass(frozen=True)
class Workers:
    """Three processes that work on all cases, and what their callers share with them."""

    port: int
    state: StateStore
    folder: Path
    tag: str
    """Makes the names of runners this test session's own."""


@pytest.fixture(scope="module")
def workers_sidecar(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """A sidecar, as variables that name it."""
    with engine.sidecar(tmp_path_factory.mktemp("sidecar")) as sidecar:
        yield sidecar.env()


@pytest.fixture(scope="module")
def workers(
    workers_sidecar: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workers]:
    """Gone after the module: they would take the work of other tests' runners."""
    folder, tag = tmp_path_factory.mktemp("workers"), uuid4().hex[:8]
    arguments = ("crew_corpus.runners:all_runners", str(folder), tag)
    processes = [WorkerProcess(_FOLDER, *arguments, variables=workers_sidecar) for _ in range(3)]
    try:
        for process in processes:
            process.wait_until_ready()
        port = int(workers_sidecar["DAPR_GRPC_PORT"])
        yield Workers(port, StateStore(address=f"127.0.0.1:{port}"), folder, tag)
    finally:
        for process in processes:
            process.stop()
