"""The sidecar of these tests. Programs of theirs do without it."""

from dataclasses import dataclass

from engines import Sidecar
from state_files import stored


@dataclass(frozen=True)
class Place:
    """A sidecar."""

    sidecar: Sidecar

    @property
    def grpc_port(self) -> int:
        return self.sidecar.grpc_port

    def stored(self) -> dict[str, bytes]:
        """What is in the state store, by key."""
        return stored(self.sidecar)
