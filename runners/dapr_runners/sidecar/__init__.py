"""An embedded sidecar for development and tests: daprd's protocol, on one SQLite file.

It serves the unmodified Dapr SDK. It is a double of one daprd with its state store, placement and
scheduler; it is not made for production.
"""

from dapr_runners.sidecar._process import EmbeddedSidecar
from dapr_runners.sidecar.errors import (
    DatabaseInUseError,
    DatabaseUnwritableError,
    ForeignDatabaseError,
    IncompatibleSdkError,
    PortTakenError,
    ResourceFileError,
    SidecarStartError,
)

__all__ = [
    "DatabaseInUseError",
    "DatabaseUnwritableError",
    "EmbeddedSidecar",
    "ForeignDatabaseError",
    "IncompatibleSdkError",
    "PortTakenError",
    "ResourceFileError",
    "SidecarStartError",
]
