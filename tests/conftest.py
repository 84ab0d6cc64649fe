"""Fixtures for every test: a sidecar of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dapr_runners.sidecar import EmbeddedSidecar


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
