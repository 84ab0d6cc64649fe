"""What programs have put into a state store whose data are a file: the embedded sidecar's, and
that of a daprd on SQLite."""

import base64
import sqlite3
from contextlib import closing

import pytest

from dapr_runners.sidecar import EmbeddedSidecar
from engines import Sidecar


def stored(sidecar: Sidecar) -> dict[str, bytes]:
    """Values by key."""
    with closing(_open(sidecar)) as database:
        found = database.execute("SELECT key, value FROM state").fetchall()
    own = f"{sidecar.app_id}||"
    keys = [(key.removeprefix(own), value) for key, value in found if key.startswith(own)]
    # Those of daprd's own actors have further parts.
    return {key: _decoded(value) for key, value in keys if "||" not in key}


def overwrite(sidecar: Sidecar, key: str, value: bytes) -> None:
    """Put a value under a key that is there, past the sidecar, which does not run."""
    kept = value if isinstance(sidecar, EmbeddedSidecar) else base64.b64encode(value).decode()
    with closing(_open(sidecar)) as database, database:
        where = (kept, f"{sidecar.app_id}||{key}")
        done = database.execute("UPDATE state SET value = ? WHERE key = ?", where)
        assert done.rowcount == 1


def _open(sidecar: Sidecar) -> sqlite3.Connection:
    path = sidecar.path if isinstance(sidecar, EmbeddedSidecar) else sidecar.database
    if path is None:
        pytest.skip("the state store is a server, whose data are not looked into")
    return sqlite3.connect(path, timeout=30)


def _decoded(value: bytes | str) -> bytes:
    """daprd's component keeps bytes as base64."""
    return value if isinstance(value, bytes) else base64.b64decode(value, validate=True)
