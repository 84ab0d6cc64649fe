"""What outlives a process: keys and values in a Dapr state store, and the codec for them."""

from dapr_runners.state._allow import AllowList
from dapr_runners.state._artifacts import ArtifactCache, Artifacts
from dapr_runners.state._channel import open_channel, sidecar_address
from dapr_runners.state._codec import Codec, Extension
from dapr_runners.state._encryption import EncryptionKeys
from dapr_runners.state._exceptions import describe_traceback
from dapr_runners.state._foreign import Foreign, ReadingCodec, as_json, as_size, describe_error
from dapr_runners.state._hashes import artifact_key
from dapr_runners.state._pandas import pandas_extensions
from dapr_runners.state._store import StateStore, StoredValue
from dapr_runners.state.errors import (
    UNREADABLE,
    CorruptRecordError,
    EncryptionError,
    EncryptionKeyMissingError,
    EncryptionKeysError,
    EncryptionUnavailableError,
    PlaintextRefusedError,
    RemoteError,
    SidecarUnreachableError,
    StateStoreError,
    UnauthorizedError,
    UnstorableValueError,
    ValueTooLargeError,
    WrongEncryptionKeyError,
    is_lasting,
)

__all__ = [
    "UNREADABLE",
    "AllowList",
    "ArtifactCache",
    "Artifacts",
    "Codec",
    "CorruptRecordError",
    "EncryptionError",
    "EncryptionKeyMissingError",
    "EncryptionKeys",
    "EncryptionKeysError",
    "EncryptionUnavailableError",
    "Extension",
    "Foreign",
    "PlaintextRefusedError",
    "ReadingCodec",
    "RemoteError",
    "SidecarUnreachableError",
    "StateStore",
    "StateStoreError",
    "StoredValue",
    "UnauthorizedError",
    "UnstorableValueError",
    "ValueTooLargeError",
    "WrongEncryptionKeyError",
    "artifact_key",
    "as_json",
    "as_size",
    "describe_error",
    "describe_traceback",
    "is_lasting",
    "open_channel",
    "pandas_extensions",
    "sidecar_address",
]
