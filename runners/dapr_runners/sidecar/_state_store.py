"""The state store's rules on SQLite: ETags, first write, expiry. daprd's state.sqlite component."""

import sqlite3
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

_ALIVE = "(expires_at IS NULL OR expires_at > ?)"


class EtagMismatchError(Exception):
    """The key is not what the writer took it for."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A value, its ETag, and when it expires (ns since the epoch)."""

    value: bytes
    etag: str
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class Put:
    """Write ``key``. ``ttl`` in seconds: None keeps it for ever."""

    key: str
    value: bytes
    etag: str | None
    first_write: bool
    ttl: int | None


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete ``key``; a key that does not exist is no error unless an ETag is given."""

    key: str
    etag: str | None


def read(db: sqlite3.Connection, store: str, key: str) -> Stored | None:
    """The value of ``key``."""
    row = db.execute(
        # _ALIVE is a constant of this module.
        f"SELECT value, etag, expires_at FROM state WHERE store = ? AND key = ? AND {_ALIVE}",  # nosec B608
        (store, key, time.time_ns()),
    ).fetchone()
    return None if row is None else Stored(*row)


def change(db: sqlite3.Connection, store: str, operations: Iterable[Put | Remove]) -> None:
    """All of ``operations`` in order, or none and :class:`EtagMismatchError`."""
    db.execute("SAVEPOINT operations")
    try:
        for operation in operations:
            _check(db, store, operation)
            if isinstance(operation, Remove):
                db.execute("DELETE FROM state WHERE store = ? AND key = ?", (store, operation.key))
            else:
                _put(db, store, operation)
    except EtagMismatchError:
        db.execute("ROLLBACK TO operations")
        raise
    finally:
        db.execute("RELEASE operations")


def sweep(db: sqlite3.Connection) -> None:
    """Delete what has expired."""
    db.execute("DELETE FROM state WHERE expires_at <= ?", (time.time_ns(),))


def _check(db: sqlite3.Connection, store: str, operation: Put | Remove) -> None:
    create = isinstance(operation, Put) and operation.first_write
    if not operation.etag and not create:
        return
    stored = read(db, store, operation.key)
    if operation.etag:
        if stored is None or stored.etag != operation.etag:
            raise EtagMismatchError
    elif stored is not None:
        raise EtagMismatchError


def _put(db: sqlite3.Connection, store: str, put: Put) -> None:
    expires_at = None if put.ttl is None else time.time_ns() + put.ttl * 1_000_000_000
    db.execute(
        "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?, ?)",
        (store, put.key, put.value, str(uuid.uuid4()), expires_at),
    )
