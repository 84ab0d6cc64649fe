"""Threads and tasks of one process do not race each other, and never wait for ever."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from memory_store import MemoryStore
from saver_cases import checkpoint, config, put, saver_on

from dapr_runners.langgraph._checkpoints import flow, gates
from dapr_runners.langgraph._checkpoints.errors import CheckpointContentionError
from dapr_runners.langgraph._checkpoints.gates import Gates

MANY = 20


async def test_many_tasks_write_without_a_lost_race() -> None:
    store = MemoryStore()
    saver = saver_on(store)
    put(saver, "t", "c1", n=1)
    store.calls.clear()
    tasks = {f"task{number:02}": number for number in range(MANY)}
    await asyncio.gather(
        *(saver.aput_writes(config("t", "c1"), [("n", tasks[task])], task) for task in tasks)
    )
    found = await saver.aget_tuple(config("t"))
    assert found is not None
    assert found.pending_writes == [(task, "n", number) for task, number in tasks.items()]
    assert store.calls.count("create") + store.calls.count("replace") == MANY


def test_many_threads_put_without_a_lost_race() -> None:
    store = MemoryStore()
    saver = saver_on(store)
    put(saver, "t", "c00", n=0)
    store.calls.clear()
    start = threading.Barrier(MANY)

    def put_one(number: int) -> None:
        start.wait()
        put(saver, "t", f"c{number:02}", "c00", n=number)

    with ThreadPoolExecutor(MANY) as pool:
        list(pool.map(put_one, range(1, MANY + 1)))
    assert len(list(saver.list(config("t")))) == MANY + 1
    assert store.calls.count("replace") == MANY


async def test_a_blocking_call_on_the_loop_of_a_task_inside_the_gate_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gates, "_PATIENCE", 0.01)
    store = MemoryStore()
    saver = saver_on(store)
    made = checkpoint("c1", n=1)
    inside = asyncio.Event()
    store.interrupt(1, inside.set)
    task = asyncio.create_task(saver.aput(config("t"), made, {}, made["channel_versions"]))
    await inside.wait()
    put(saver, "t", "c2", n=2)
    await task
    assert [each.checkpoint["id"] for each in saver.list(config("t"))] == ["c2", "c1"]


async def test_a_cancelled_waiter_does_not_keep_the_gate() -> None:
    store: Any = MemoryStore()
    both = Gates()
    entered: list[str] = []
    someone = asyncio.Event()

    def inside(name: str) -> flow.Flow[None]:
        entered.append(name)
        someone.set()
        yield from flow.read("key")
        yield from flow.read("key")

    def guarded(name: str) -> asyncio.Task[None]:
        return asyncio.create_task(flow.arun(store, both.guard("gate", inside(name))))

    tasks = [guarded(name) for name in "abc"]
    await someone.wait()
    tasks[1].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert tasks[1].cancelled()
    assert entered == ["a", "c"]
    assert both.enter("gate") is None


def test_a_failure_inside_the_gate_opens_it() -> None:
    store = MemoryStore()
    saver = saver_on(store)

    def fail() -> None:
        raise ConnectionError

    store.interrupt(1, fail)
    with pytest.raises(ConnectionError):
        put(saver, "t", "c1", n=1)
    put(saver, "t", "c1", n=1)
    assert len(list(saver.list(config("t")))) == 1


def test_endless_contention_is_given_up_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "ATTEMPTS", 3)
    store = MemoryStore()
    saver = saver_on(store)
    put(saver, "t", "c1", n=1)
    monkeypatch.setattr(store, "replace", lambda key, value, etag: False)
    with pytest.raises(CheckpointContentionError) as caught:
        put(saver, "t", "c2", n=2)
    assert str(caught.value) == (
        "The checkpoint index 'checkpoints/t/t/n/~' was changed by other writers in each of 3"
        " attempts, so this checkpoint is not recorded and the thread is as the others left it."
        " Run fewer writers on one thread, or try again."
    )
    assert [each.checkpoint["id"] for each in saver_on(store).list(config("t"))] == ["c1"]
