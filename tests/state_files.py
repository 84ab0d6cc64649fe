"""What is in a state store whose data are a file: the embedded sidecar's, and that of a daprd on
SQLite. Where they are not, the test is skipped."""

import base64
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dapr_runners.sidecar import EmbeddedSidecar
from engines import Sidecar


def stored(sidecar: Sidecar) -> dict[str, bytes]:
    """What programs have put there, by key."""
    # Keys of daprd's own actors have further parts.
    return {key: value for key, value in _rows(sidecar).items() if "||" not in key}


def histories(sidecar: Sidecar) -> list[bytes]:
    """The events in the histories of workflows."""
    if isinstance(sidecar, EmbeddedSidecar):
        with closing(_open(sidecar)) as database:
            return [events for (events,) in database.execute("SELECT events FROM history")]
    return [value for key, value in _rows(sidecar).items() if "||history-" in key]


def everything(sidecar: Sidecar) -> list[bytes]:
    """All there is: the files, and what is written otherwise in them."""
    path = _path(sidecar)
    files = [each.read_bytes() for each in path.parent.glob(f"{path.name}*")]
    return files + list(_rows(sidecar).values())


def _rows(sidecar: Sidecar) -> dict[str, bytes]:
    with closing(_open(sidecar)) as database:
        found = database.execute("SELECT key, value FROM state").fetchall()
    own = f"{sidecar.app_id}||"
    return {key.removeprefix(own): _decoded(value) for key, value in found}


def overwrite(sidecar: Sidecar, key: str, value: bytes) -> None:
    """Put a value under a key that is there, past the sidecar."""
    kept = value if isinstance(sidecar, EmbeddedSidecar) else base64.b64encode(value).decode()
    with closing(_open(sidecar)) as database, database:
        where = (kept, f"{sidecar.app_id}||{key}")
        done = database.execute("UPDATE state SET value = ? WHERE key = ?", where)
        assert done.rowcount == 1


def _open(sidecar: Sidecar) -> sqlite3.Connection:
    return sqlite3.connect(_path(sidecar), timeout=30)


def _path(sidecar: Sidecar) -> Path:
    path = sidecar.path if isinstance(sidecar, EmbeddedSidecar) else sidecar.database
    if path is None:
        pytest.skip("the state store is a server, whose data are not looked into")
    return path


def _decoded(value: bytes | str) -> bytes:
    """daprd's component keeps bytes as base64."""
    return value if isinstance(value, bytes) else base64.b64decode(value, validate=True)
