"""The SQLite file: one writer that commits in groups, and a reader that never waits for it.

Changes are applied on the event loop and committed on a thread, so that a slow disk holds up
nobody but those who wait for that very commit. Whatever arrives while a commit is under way
shares the next one: throughput does not depend on how long the disk takes. Only where the disk
takes less time than the way to the thread and back, a few writes are committed on the spot.
"""

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dapr_runners.sidecar._file_lock import FileLock
from dapr_runners.sidecar.errors import (
    DatabaseInUseError,
    DatabaseUnwritableError,
    ForeignDatabaseError,
)

_APPLICATION_ID = 0x64617072  # "dapr"
_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE instances (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, status INTEGER NOT NULL, execution_id TEXT NOT NULL,
    created_at INTEGER NOT NULL, start_at INTEGER, started_at INTEGER, completed_at INTEGER,
    parent_id TEXT, parent_task INTEGER, parent_name TEXT, parent_execution TEXT,
    custom_status TEXT
) WITHOUT ROWID;
CREATE TABLE payloads (id TEXT PRIMARY KEY, input TEXT, output TEXT, failure BLOB);
CREATE TABLE history (
    nr INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, events BLOB NOT NULL
);
CREATE INDEX history_by_id ON history (id);
CREATE TABLE inbox (nr INTEGER PRIMARY KEY, id TEXT NOT NULL, event BLOB NOT NULL);
CREATE INDEX inbox_by_id ON inbox (id);
CREATE TABLE tasks (id TEXT, task INTEGER, history INTEGER NOT NULL, PRIMARY KEY (id, task))
    WITHOUT ROWID;
CREATE TABLE timers (
    id TEXT, timer INTEGER, fire_at INTEGER NOT NULL, event TEXT, PRIMARY KEY (id, timer)
) WITHOUT ROWID;
CREATE TABLE state (
    store TEXT, key TEXT, value BLOB NOT NULL, etag TEXT NOT NULL, expires_at INTEGER,
    PRIMARY KEY (store, key)
);
CREATE INDEX state_by_expiry ON state (expires_at) WHERE expires_at IS NOT NULL;
"""

_ON_THE_SPOT = 0.0004
"""Seconds: a disk that commits in less, on average, is not worth a thread for a few writes."""

_FEW = 2

_PATIENCE = 0.003
"""Seconds that a patient change waits at most."""

Change = Callable[[sqlite3.Connection], Any]
"""What to do to the database. One that raises must have written nothing."""


@dataclass(slots=True)
class _Write:
    change: Change
    committed: Callable[[Any, Exception | None], None]
    result: Any = None
    error: Exception | None = None


class Database:
    """Opens or creates the file at ``path`` and holds it until :meth:`close`.

    ``failed`` is called once when the disk refuses a commit: what memory holds is then no longer
    what the file holds, and the process has to end.
    """

    def __init__(self, path: Path, failed: Callable[[Exception], None]) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path.with_name(path.name + ".lock"))
            if not self._lock.acquire():
                raise DatabaseInUseError(database=str(path))
            # It holds all values in clear: for nobody else. SQLite gives its other files the same.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise DatabaseUnwritableError(database=str(path), reason=str(error)) from error
        self._failed = failed
        try:
            self._writer = _open(path)
            self.reader = _connect(path)
            self.reader.execute("PRAGMA query_only = ON")
        except sqlite3.OperationalError as error:
            self._lock.release()
            raise DatabaseUnwritableError(database=str(path), reason=str(error)) from error
        except BaseException:
            self._lock.release()
            raise
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Write] = []
        self._busy = False
        self._pressed = False
        self._patience: asyncio.TimerHandle | None = None
        self._broken: Exception | None = None
        self._pace = _ON_THE_SPOT
        self._commits: queue.SimpleQueue[list[_Write] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._commit_groups, name="commit", daemon=True)
        self._thread.start()

    def submit(
        self,
        change: Change,
        committed: Callable[[Any, Exception | None], None],
        *,
        patient: bool = False,
    ) -> None:
        """Apply ``change`` in the next group; ``committed`` learns of it once it is durable.

        Changes are applied, and their callbacks called, in the order of submission. A patient
        change lets a moment pass for others to come, and goes with them in one commit.
        """
        if self._broken is not None:
            committed(None, self._broken)
            return
        self._waiting.append(_Write(change, committed))
        if not patient:
            self._press()
        elif not self._pressed and self._patience is None:
            self._patience = self._loop.call_later(_PATIENCE, self._press)

    async def write(self, change: Change) -> Any:
        """Apply ``change`` and return its result once it is durable."""
        done: asyncio.Future[Any] = self._loop.create_future()

        def committed(result: Any, error: Exception | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        self.submit(change, committed)
        return await done

    async def close(self) -> None:
        """Commit what waits, then let go of the file."""
        if self._thread.is_alive():
            with contextlib.suppress(Exception):
                await self.write(lambda _: None)
            self._commits.put(None)
            self._thread.join()
        self.reader.close()
        self._writer.close()
        self._lock.release()

    def _press(self) -> None:
        self._pressed = True
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._apply)

    def _apply(self) -> None:
        self._pressed = False
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        group, self._waiting = self._waiting, []
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            for write in group:
                try:
                    write.result = write.change(self._writer)
                except sqlite3.Error:
                    raise
                except Exception as error:
                    write.error = error
        except sqlite3.Error as error:
            self._give_up(group, error)
            return
        if len(group) <= _FEW and self._pace < _ON_THE_SPOT:
            self._loop.call_soon(self._finish, group, *self._commit())
        else:
            self._commits.put(group)

    def _commit_groups(self) -> None:
        while (group := self._commits.get()) is not None:
            outcome = self._commit()
            # The loop is closed when the process is on its way out: nobody is left to tell.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._finish, group, *outcome)

    def _commit(self) -> tuple[float, Exception | None]:
        began = time.perf_counter()
        try:
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            return 0.0, error
        return time.perf_counter() - began, None

    def _finish(self, group: list[_Write], seconds: float, error: Exception | None) -> None:
        if error is not None:
            self._give_up(group, error)
            return
        self._pace += (seconds - self._pace) / 8
        # The next group first: its commit then runs while this one's callbacks do.
        if self._pressed:
            self._apply()
        else:
            self._busy = False
        for write in group:
            write.committed(write.result, write.error)

    def _give_up(self, group: list[_Write], error: Exception) -> None:
        self._broken = error
        lost, self._waiting = group + self._waiting, []
        for write in lost:
            write.committed(None, error)
        self._failed(error)


def _connect(path: Path) -> sqlite3.Connection:
    # check_same_thread: the writer moves between the loop and the commit thread, never at once.
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA busy_timeout = 5000")
    return db


def _open(path: Path) -> sqlite3.Connection:
    db = _connect(path)
    try:
        _prepare(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    try:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (schema,) = db.execute("PRAGMA user_version").fetchone()
        empty = db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise ForeignDatabaseError(database=str(path), reason=str(error)) from error
    if not empty and application != _APPLICATION_ID:
        raise ForeignDatabaseError(database=str(path), reason="it has other tables")
    if not empty and schema != _SCHEMA_VERSION:
        reason = f"its layout is version {schema}, this is version {_SCHEMA_VERSION}"
        raise ForeignDatabaseError(database=str(path), reason=reason)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 4000")
    if empty:
        db.executescript(
            f"BEGIN; {_SCHEMA} PRAGMA application_id = {_APPLICATION_ID};"
            f"PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;"
        )
