"""The daprd that tests run on: it is killed and comes back, and nothing of it is left."""

import asyncio
import signal
from pathlib import Path

import pytest

from dapr_real import Dapr, Daprd, Keeper, Service, healthy
from dapr_runners.state import StateStore
from dapr_store import NoStoreError, store_named
from engines import Sidecar


def _read(daprd: Daprd) -> bytes | None:
    store = StateStore(address=daprd.address)
    try:
        return store.get("key")
    finally:
        store.close()


def test_it_keeps_its_state_over_a_kill(dapr: Dapr, tmp_path: Path) -> None:
    """Where this is skipped, all tests run on the embedded sidecar only."""
    with dapr.sidecar(tmp_path) as daprd:
        store = StateStore(address=daprd.address)
        assert store.create("key", b"value")
        store.close()
        daprd.kill()
        assert daprd.start().pid is not None
        assert _read(daprd) == b"value"
    assert daprd.pid is None


def test_replicas_share_their_state_and_apps_do_not(dapr: Dapr, tmp_path: Path) -> None:
    with (
        dapr.sidecar(tmp_path / "one") as one,
        dapr.sidecar(tmp_path / "two", one.app_id) as two,
        dapr.sidecar(tmp_path / "other") as other,
    ):
        store = StateStore(address=one.address)
        store.create("key", b"value")
        store.close()
        assert _read(two) == b"value"
        assert _read(other) is None


def test_tests_that_are_killed_leave_nothing(tmp_path: Path) -> None:
    keeper = Keeper()
    service = Service(keeper, ["sleep", "60"], tmp_path / "log", lambda: True)
    service.start()
    keeper.close()  # as it is closed when its parent dies
    assert service.wait() == -signal.SIGKILL


def test_what_does_not_start_says_why(tmp_path: Path) -> None:
    keeper = Keeper()
    command = ["sh", "-c", "echo no such flag; exit 3"]
    service = Service(keeper, command, tmp_path / "log", healthy("http://127.0.0.1:1"))
    with pytest.raises(RuntimeError, match=r"exit 3[^x]*no such flag"):
        service.start()
    keeper.close()


def test_a_store_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(NoStoreError, match="mysql is none of sqlite, redis, postgresql"):
        store_named("mysql", tmp_path)


async def test_reads_that_nobody_waits_for_harm_no_other(sidecar: Sidecar) -> None:
    """daprd on SQLite would read what was there when a read was cancelled, ever after."""
    store = StateStore(address=sidecar.address)
    for number in range(20):
        store.create(f"large{number}", b"x" * 20_000)
    for turn in range(100):
        reads = [asyncio.create_task(store.aget(f"large{number}")) for number in range(20)]
        await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
        for read in reads:
            read.cancel()
        assert await store.acreate(f"new{turn}", b"value")
        assert set(await asyncio.gather(*(store.aget(f"new{turn}") for _ in range(12)))) == {
            b"value"
        }
        await asyncio.wait(reads)
    store.close()


@pytest.mark.parametrize("is_read", [False, True])
async def test_what_was_created_can_be_overwritten(sidecar: Sidecar, is_read: bool) -> None:
    """Redis refuses it without an ETag."""
    store = StateStore(address=sidecar.address)
    for key in ("key", "other", "another", "fourth"):
        assert store.create(key, b"1")
    if is_read:
        assert store.put_many_and_read({"key": b"2", "other": b"2", "new": b"2"}, "another")
        assert await store.aput_many_and_read({"fourth": b"2"}, "another")
    else:
        store.put_many({"key": b"2", "other": b"2", "new": b"2"})
        await store.aput("fourth", b"2")
    assert [store.get(key) for key in ("key", "other", "new", "fourth")] == [b"2"] * 4
    assert store.get("another") == b"1"
    assert not store.create("key", b"3")
    store.close()
