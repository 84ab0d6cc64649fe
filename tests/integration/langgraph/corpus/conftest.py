"""A sidecar and two worker processes that serve the whole corpus."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from corpus.case import Services
from corpus.marks import MARKS, watch_activities
from corpus.runners import SAVERS, services_on_files
from dapr_runners.state import StateStore
from engines import Engine
from worker_processes import WorkerProcess

_FOLDER = Path(__file__).parent.parent


@dataclass(frozen=True)
class Workers:
    """Two processes that work on all cases, and what their callers share with them."""

    port: int
    state: StateStore
    services: dict[str, Services]
    """By saver."""
    marks: Path
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
    services = {saver: services_on_files(folder / saver) for saver in SAVERS}
    variables = {**workers_sidecar, MARKS: str(folder / "marks")}
    arguments = ("corpus.runners:all_runners", str(folder), tag)
    processes = [WorkerProcess(_FOLDER, *arguments, variables=variables) for _ in range(2)]
    try:
        for process in processes:
            process.wait_until_ready()
        port = int(workers_sidecar["DAPR_GRPC_PORT"])
        state = StateStore(address=f"127.0.0.1:{port}")
        yield Workers(port, state, services, folder / "marks", tag)
    finally:
        for process in processes:
            process.stop()


@pytest.fixture(scope="module", autouse=True)
def watched() -> Iterator[None]:
    """Activities that fail are marked."""
    end = watch_activities()
    yield
    end()
