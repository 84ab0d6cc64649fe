"""The engines that tests run on, and the sidecars they make."""

import time
from pathlib import Path
from typing import TypeAlias

from dapr_real import Dapr, Daprd
from dapr_runners.engine import sidecar_metadata
from dapr_runners.sidecar import EmbeddedSidecar

_PATIENCE = 60.0


class EmbeddedEngine:
    """Makes embedded sidecars."""

    name = "embedded"

    def sidecar(self, directory: Path) -> EmbeddedSidecar:
        """One that is not started, on an empty database."""
        return EmbeddedSidecar(directory / "sidecar.db")


Engine: TypeAlias = EmbeddedEngine | Dapr
"""Makes sidecars, each an app of its own: no other test's worker takes its work."""
Sidecar: TypeAlias = EmbeddedSidecar | Daprd


def until_nobody_works(sidecar: Sidecar) -> None:
    """Return once the sidecar has noticed that its last worker is gone: until then it takes what is
    for one."""
    give_up_at = time.monotonic() + _PATIENCE
    while sidecar_metadata(sidecar.address, _PATIENCE).workflows.connected_workers:
        assert time.monotonic() < give_up_at, "a worker is still connected"
        time.sleep(0.005)
