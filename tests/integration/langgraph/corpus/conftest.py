"""A sidecar and two worker processes that serve the whole corpus."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpus.case import Services
from corpus.marks import MARKS, watch_activities
from corpus.runners import SAVERS, services_on_files
from dapr_runners.sidecar import EmbeddedSidecar
from dapr_runners.state import StateStore
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


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    folder = tmp_path_factory.mktemp("workers")
    marks = folder / "marks"
    services = {saver: services_on_files(folder / saver) for saver in SAVERS}
    with EmbeddedSidecar(folder / "sidecar.db") as sidecar:
        variables = {**sidecar.env(), MARKS: str(marks)}
        processes = [
            WorkerProcess(_FOLDER, "corpus.runners:all_runners", str(folder), variables=variables)
            for _ in range(2)
        ]
        for process in processes:
            process.wait_until_ready()
        yield Workers(sidecar.grpc_port, StateStore(address=sidecar.address), services, marks)
        for process in processes:
            process.stop()


@pytest.fixture(scope="session", autouse=True)
def watched() -> None:
    """Activities that fail are marked."""
    watch_activities()


@pytest.fixture(scope="session")
def second_sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedSidecar]:
    """For runners that work in the test process: not beside the workers, who would take their
    work."""
    with EmbeddedSidecar(tmp_path_factory.mktemp("second") / "sidecar.db") as running:
        yield running
