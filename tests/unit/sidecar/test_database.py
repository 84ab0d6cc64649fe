"""The database: groups of writes, and what happens when one fails."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dapr_runners.sidecar import DatabaseInUseError, ForeignDatabaseError
from dapr_runners.sidecar import _file_lock as file_lock
from dapr_runners.sidecar._database import Database


def _put(key: str) -> Any:
    return lambda db: db.execute("INSERT INTO payloads (id) VALUES (?)", (key,)).rowcount


def _keys(db: sqlite3.Connection) -> list[str]:
    return [key for (key,) in db.execute("SELECT id FROM payloads ORDER BY id")]


def _never(error: Exception) -> None:
    raise AssertionError(error)


async def test_a_write_is_there_once_it_returns(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)
    assert await database.write(_put("a")) == 1
    assert _keys(database.reader) == ["a"]
    await database.close()
    again = Database(tmp_path / "a.db", _never)
    assert _keys(again.reader) == ["a"]
    await again.close()


async def test_writes_that_come_together_share_a_commit(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)
    statements: list[str] = []
    await database.write(lambda db: db.set_trace_callback(statements.append))
    await asyncio.gather(*(database.write(_put(f"k{n}")) for n in range(100)))
    assert len(_keys(database.reader)) == 100
    # The first may have gone alone; the rest gathered while it was committed.
    assert statements.count("COMMIT") <= 4
    await database.close()


async def test_a_patient_write_goes_with_the_next(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)
    statements: list[str] = []
    done = asyncio.Event()
    await database.write(lambda db: db.set_trace_callback(statements.append))
    database.submit(_put("patient"), lambda *_: done.set(), patient=True)
    await database.write(_put("other"))
    assert done.is_set()
    words = [line.split()[0] for line in statements]
    assert words == ["COMMIT", "BEGIN", "INSERT", "INSERT", "COMMIT"]
    await database.close()


async def test_a_patient_write_does_not_wait_for_ever(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)
    for number in range(3):
        done = asyncio.Event()
        database.submit(_put(f"k{number}"), lambda *_, done=done: done.set(), patient=True)
        await asyncio.wait_for(done.wait(), 60)
    assert len(_keys(database.reader)) == 3
    await database.close()


async def test_callbacks_come_in_order(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)
    order: list[int] = []
    done = asyncio.Event()
    for number in range(20):
        database.submit(
            _put(f"k{number}"),
            lambda *_, number=number: order.append(number),
            patient=number % 2 == 0,
        )
        if number % 3 == 0:
            await asyncio.sleep(0)
    database.submit(lambda _: None, lambda *_: done.set())
    await done.wait()
    assert order == list(range(20))
    await database.close()


async def test_a_change_that_raises_concerns_nobody_else(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)

    def refuse(_: sqlite3.Connection) -> None:
        raise ValueError("no")

    results = await asyncio.gather(
        database.write(_put("a")),
        database.write(refuse),
        database.write(_put("b")),
        return_exceptions=True,
    )
    assert results[0] == results[2] == 1
    assert isinstance(results[1], ValueError)
    assert _keys(database.reader) == ["a", "b"]
    await database.close()


async def test_a_failing_disk_fails_everything(tmp_path: Path) -> None:
    failures: list[Exception] = []
    database = Database(tmp_path / "a.db", failures.append)
    # As on a full disk: no page may be added any more.
    await database.write(lambda db: db.execute("PRAGMA max_page_count = 1").fetchone() and None)
    large = "x" * 1_000_000
    with pytest.raises(sqlite3.OperationalError, match="full"):
        await database.write(_put(large))
    with pytest.raises(sqlite3.OperationalError):
        await database.write(_put("later"))
    assert len(failures) == 1
    await database.close()


async def test_reads_do_not_see_what_is_not_committed(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)
    seen: list[list[str]] = []

    def put_and_look(db: sqlite3.Connection) -> None:
        _put("a")(db)
        seen.append(_keys(database.reader))

    await database.write(put_and_look)
    assert seen == [[]]
    assert _keys(database.reader) == ["a"]
    await database.close()


async def test_a_database_is_held_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "_PATIENCE", 0.0)
    database = Database(tmp_path / "a.db", _never)
    with pytest.raises(DatabaseInUseError, match=r"a\.db is held by another embedded sidecar"):
        Database(tmp_path / "a.db", _never)
    await database.close()
    await Database(tmp_path / "a.db", _never).close()


async def test_a_later_layout_is_left_alone(tmp_path: Path) -> None:
    database = Database(tmp_path / "a.db", _never)
    await database.close()
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(ForeignDatabaseError, match="its layout is version 99"):
        Database(tmp_path / "a.db", _never)
