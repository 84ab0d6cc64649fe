"""What outlives a process: keys and values in a Dapr state store, and the codec for them."""

from dapr_runners.state._store import StateStore, StoredValue, sidecar_address
from dapr_runners.state.errors import (
    CorruptRecordError,
    SidecarUnreachableError,
    StateStoreError,
    UnauthorizedError,
    UnstorableValueError,
)

__all__ = [
    "CorruptRecordError",
    "SidecarUnreachableError",
    "StateStore",
    "StateStoreError",
    "StoredValue",
    "UnauthorizedError",
    "UnstorableValueError",
    "sidecar_address",
]
