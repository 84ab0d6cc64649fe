"""The engines that tests run on, and the sidecars they make."""

from pathlib import Path
from typing import TypeAlias

from dapr_real import Dapr, Daprd
from dapr_runners.sidecar import EmbeddedSidecar


class EmbeddedEngine:
    """Makes embedded sidecars."""

    name = "embedded"

    def sidecar(self, directory: Path) -> EmbeddedSidecar:
        """One that is not started, on an empty database."""
        return EmbeddedSidecar(directory / "sidecar.db")


Engine: TypeAlias = EmbeddedEngine | Dapr
"""Makes sidecars, each an app of its own: no other test's worker takes its work."""
Sidecar: TypeAlias = EmbeddedSidecar | Daprd


def database_of(sidecar: Sidecar) -> Path | None:
    """The file of an embedded sidecar."""
    return sidecar.path if isinstance(sidecar, EmbeddedSidecar) else None
