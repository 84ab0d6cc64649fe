"""What every acceptance test has: the effects service, and workers forked at little cost."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.cluster import Cluster
from harness.effects import Effects, EffectsService
from harness.processes import start_fork_server

from engines import Sidecar
from quiet_crewai import settle

settle()
os.environ.setdefault("OTEL_SDK_DISABLED", "true")


@pytest.fixture(scope="session")
def effects_service() -> Iterator[EffectsService]:
    """The process that counts effects."""
    # Not pytest's directory: the path of a socket must be short.
    with (
        tempfile.TemporaryDirectory(prefix="dapr-runners-") as directory,
        EffectsService(Path(directory)) as service,
    ):
        yield service


_numbers = itertools.count()


@pytest.fixture
def effects(effects_service: EffectsService, request: pytest.FixtureRequest) -> Effects:
    """The service, in a case of this test's own."""
    return effects_service.case(f"{request.node.name}-{next(_numbers)}")


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> None:
    """Import once what every worker imports."""
    start_fork_server(
        ["dapr_runners.langgraph", "harness.hooks", "harness.program", "harness.crew_program"]
    )


@pytest.fixture
def cluster(sidecar: Sidecar, effects: Effects, tmp_path: Path) -> Iterator[Cluster]:
    """Workers and callers on the test's sidecar."""
    cluster = Cluster(sidecar, effects, tmp_path)
    yield cluster
    cluster.close()
