"""State stores for a real Dapr: where their component files are, and their servers."""

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


class NoStoreError(Exception):
    """The store cannot be had here."""


@dataclass(frozen=True)
class Server:
    """How a store's server is started."""

    command: list[str]
    is_ready: Callable[[], bool]
    popen: dict[str, Any] = field(default_factory=dict[str, Any])


class Store(Protocol):
    """A state store. ``components`` is its folder of component files."""

    name: str
    components: str

    def server(self, port: int) -> Server | None:
        """What serves it at ``port``, if it needs a server."""

    def metadata(self, app_id: str) -> dict[str, str]:
        """What the component file is to say for an app, once :meth:`server` was called."""

    def file(self, app_id: str) -> Path | None:
        """Where an app's data are, if no server has them."""


def store_named(name: str, directory: Path) -> Store:
    """``sqlite``, ``redis`` or ``postgresql``, with its data in ``directory``. Raises
    :class:`NoStoreError`."""
    kinds: dict[str, Callable[[Path], Store]] = {
        "sqlite": Sqlite,
        "redis": Redis,
        "postgresql": PostgreSQL,
    }
    if name not in kinds:
        raise NoStoreError(f"TEST_DAPR_STORE={name} is none of {', '.join(kinds)}")
    return kinds[name](directory)


class Sqlite:
    """A file for each app, which its replicas share."""

    name = "sqlite"
    components = "."

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def server(self, port: int) -> Server | None:
        return None

    def metadata(self, app_id: str) -> dict[str, str]:
        return {"connectionString": str(self.file(app_id))}

    def file(self, app_id: str) -> Path | None:
        return self._directory / f"{app_id}.db"


class Redis:
    """A server whose appendonly file is synced each second."""

    name = "redis"
    components = "redis"

    def __init__(self, directory: Path) -> None:
        self._binary = _binary("redis-server")
        self._directory = directory / "redis"
        self._directory.mkdir()
        self._port = 0

    def server(self, port: int) -> Server | None:
        self._port = port
        command = [
            self._binary,
            *("--port", str(port), "--bind", "127.0.0.1", "--dir", str(self._directory)),
            *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
        ]
        return Server(command, lambda: _redis_answers(port))

    def metadata(self, app_id: str) -> dict[str, str]:
        return {"redisHost": f"127.0.0.1:{self._port}"}

    def file(self, app_id: str) -> Path | None:
        return None


class PostgreSQL:
    """A server on a new cluster."""

    name = "postgresql"
    components = "postgresql"

    def __init__(self, directory: Path) -> None:
        # `postgres` on the PATH is a link where a distribution has several versions.
        self._binaries = Path(_binary("postgres")).resolve().parent
        # Not pytest's directory: it is closed to other users, and the server refuses to be root.
        self._data = Path(tempfile.mkdtemp(prefix="dapr-runners-postgresql-"))
        atexit.register(shutil.rmtree, self._data, ignore_errors=True)
        self._port = 0

    def server(self, port: int) -> Server | None:
        self._port = port
        user: dict[str, Any] = {"cwd": "/"}
        if os.geteuid() == 0:
            shutil.chown(self._data, "nobody")
            user |= {"user": "nobody"}
        make = [str(self._binaries / "initdb"), "-D", str(self._data), "-U", "postgres"]
        make += ["--auth", "trust", "--locale", "C", "--encoding", "UTF8"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL, **user)
        command = [
            str(self._binaries / "postgres"),
            *("-D", str(self._data), "-p", str(port), "-h", "127.0.0.1", "-k", ""),
            *("-c", "max_connections=500"),
        ]
        ask = [str(self._binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        return Server(command, lambda: subprocess.run(ask).returncode == 0, user)

    def metadata(self, app_id: str) -> dict[str, str]:
        where = f"host=127.0.0.1 user=postgres port={self._port} database=postgres"
        return {"connectionString": where}

    def file(self, app_id: str) -> Path | None:
        return None


def _binary(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NoStoreError(f"no real Dapr on this store: {name} is not on the PATH")
    return found


def _redis_answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2) as sock:
        sock.sendall(b"PING\r\n")
        return sock.recv(16).startswith(b"+PONG")
    return False
