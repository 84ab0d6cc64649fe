"""What can go wrong with state: the sidecar, the store, a value, a record."""

from dataclasses import dataclass
from typing import ClassVar

from dapr_runners.errors import DaprRunnersError, ErrorCategory

_LASTING = (
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNIMPLEMENTED",
)


@dataclass(eq=False)
class SidecarUnreachableError(DaprRunnersError):
    """No Dapr sidecar answers at {address} ({detail}), so nothing can run. Start the program with
    `dapr-runners run -- python app.py` or `dapr run --app-id NAME -- python app.py`, or point
    DAPR_GRPC_PORT at the sidecar's gRPC port."""

    category: ClassVar[ErrorCategory] = "no sidecar"

    address: str
    detail: str


@dataclass(eq=False)
class UnauthorizedError(DaprRunnersError):
    """The Dapr sidecar at {address} refused the API token, so nothing can run. Set DAPR_API_TOKEN
    in this process to the token the sidecar was started with."""

    category: ClassVar[ErrorCategory] = "no sidecar"

    address: str


@dataclass(eq=False)
class StateStoreError(DaprRunnersError):
    """The state store component {store!r} answered {status}: {detail}. What was being written is
    not recorded. Check that the component exists in the sidecar's resources path and works."""

    store: str
    status: str
    detail: str

    @property
    def is_lasting(self) -> bool:
        """Whether asking again would be answered the same."""
        return self.status in _LASTING

    @property
    def may_be_conflict(self) -> bool:
        """Whether this may be a lost race for a key rather than a fault."""
        return self.status in ("ABORTED", "INTERNAL", "FAILED_PRECONDITION")


@dataclass(eq=False)
class UnstorableValueError(DaprRunnersError):
    """{where} is a {type_name}, which cannot be stored: {reason}. A value that could not be read
    back with its exact type is refused before anything is written, so this step is not recorded.
    {remedy}"""

    where: str
    type_name: str
    reason: str
    remedy: str


@dataclass(eq=False)
class ValueTooLargeError(UnstorableValueError):
    """{where} is a {type_name} of {size} bytes as it is stored, and a value may have {limit} here.
    It was refused before anything was written, so this step is not recorded. {remedy}"""

    size: int
    limit: int


@dataclass(eq=False)
class CorruptRecordError(DaprRunnersError):
    """The record {key!r} cannot be read back: {reason}. The run that needs it cannot go on, and
    guessing would change its result. Restore the state store from a backup, or purge the run and
    start it again."""

    key: str
    reason: str


class EncryptionError(DaprRunnersError):
    """What is kept in the state store cannot be encrypted, or read, in this process."""


@dataclass(eq=False)
class EncryptionUnavailableError(EncryptionError):
    """Values are to be encrypted and the cryptography package is not installed, so nothing was read
    or written. Install it: pip install 'dapr-runners[encryption]'."""


@dataclass(eq=False)
class EncryptionKeysError(EncryptionError, ValueError):
    """The encryption keys cannot be used: {reason}. Nothing was read or written with them. A key is
    32 random bytes, written id:base64; make one with: openssl rand -base64 32."""

    reason: str


@dataclass(eq=False)
class EncryptionKeyMissingError(EncryptionError):
    """The value of {key!r} is encrypted with the key {key_id!r}, which this process does not have
    (it has: {known}), so it cannot be read. Add the key to DAPR_RUNNERS_ENCRYPTION_KEYS, or to the
    secret that holds the keys; the run goes on then."""

    key: str
    key_id: str
    known: str


@dataclass(eq=False)
class WrongEncryptionKeyError(EncryptionError):
    """The value of {key!r} is encrypted with another key than the one this process knows as
    {key_id!r}, so it cannot be read. Give this process the key that wrote it; the run goes on
    then."""

    key: str
    key_id: str


@dataclass(eq=False)
class PlaintextRefusedError(EncryptionError):
    """The value of {key!r} is not encrypted, and with encryption on such values are refused, as
    anybody may have put them there. Where values are left from before encryption was turned on, set
    DAPR_RUNNERS_ENCRYPTION_PLAINTEXT=accept until their runs are over; the run goes on then."""

    key: str


UNREADABLE = (
    CorruptRecordError,
    EncryptionKeyMissingError,
    WrongEncryptionKeyError,
    PlaintextRefusedError,
)
"""What reading one value raises that is not right, or not for this process: others are read."""


@dataclass(eq=False)
class RemoteError(DaprRunnersError):
    """{type_name}: {detail} (The error was raised in another process; this one has not imported
    its class, or cannot make it.)"""

    type_name: str
    detail: str


def is_lasting(error: BaseException) -> bool:
    """Whether an operation that raised ``error`` would raise it again, however often it is tried:
    a damaged record, a value that the store refuses."""
    if isinstance(error, StateStoreError):
        return error.is_lasting
    return isinstance(error, (CorruptRecordError, UnstorableValueError))
