"""A sidecar with a worker process, for commands."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cli_helpers import Bench

from engines import Sidecar
from worker_processes import WorkerProcess


@pytest.fixture
def bench(sidecar: Sidecar, tmp_path: Path) -> Iterator[Bench]:
    """A sidecar of its own, with nobody who works."""
    folder = tmp_path / "bench"
    folder.mkdir()
    os.mkfifo(folder / "gate")
    pool = ThreadPoolExecutor(4)
    made = Bench(sidecar, folder, pool)
    yield made
    made.close()
    sidecar.stop()  # who still waits for a run gets an error
    pool.shutdown(wait=False, cancel_futures=True)


@pytest.fixture
def worker(bench: Bench) -> Iterator[WorkerProcess]:
    """A process that works on the graphs."""
    with bench.worker() as process:
        yield process
