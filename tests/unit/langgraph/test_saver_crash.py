"""A process killed between any two state calls leaves a thread that can be read and gone on."""

import contextlib
import itertools
from collections.abc import Callable
from typing import cast

import pytest
from memory_store import Killed, MemoryStore, kill
from saver_cases import config, content, ids, put, saver_on
from saver_operations import (
    OPERATIONS,
    THREADS,
    delete_for_runs,
    delete_thread,
    prepared,
    prune,
    put_first,
    put_next,
)

from dapr_runners.langgraph import DaprSaver
from dapr_runners.langgraph._checkpoints.flow import run
from dapr_runners.langgraph._checkpoints.keys import Keys
from dapr_runners.langgraph._checkpoints.threads import all_threads
from dapr_runners.state import StateStore


@pytest.mark.parametrize("redis", [False, True], ids=["sql", "redis"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_at_each_call_then_repeated(
    operation: Callable[[DaprSaver], None], redis: bool
) -> None:
    untouched = prepared(redis)
    before = content(saver_on(untouched), *THREADS)
    already = len(untouched.calls)
    operation(saver_on(untouched))
    calls = len(untouched.calls) - already
    after = content(saver_on(untouched), *THREADS)
    remaining = set(untouched.values)
    assert calls > 1
    assert after != before

    for at in range(1, calls + 1):
        store = prepared(redis)
        store.interrupt(at, kill)
        with pytest.raises(Killed):
            operation(saver_on(store))
        readable = content(saver_on(store), *THREADS)
        assert {str(each.config) for each in readable} <= {
            str(each.config) for each in [*before, *after]
        }
        operation(saver_on(store))
        assert content(saver_on(store), *THREADS) == after, f"killed at call {at}"
        assert without_random(set(store.values)) >= without_random(remaining)


@pytest.mark.parametrize("operation", [delete_thread, delete_for_runs, prune])
def test_a_killed_deletion_leaves_no_document_behind_once_repeated(
    operation: Callable[[DaprSaver], None],
) -> None:
    untouched = prepared(redis=False)
    operation(saver_on(untouched))
    for at in itertools.count(1):
        store = prepared(redis=False)
        store.interrupt(at, kill)
        with contextlib.suppress(Killed):
            operation(saver_on(store))
        if not store.interrupted:
            break
        operation(saver_on(store))
        assert without_random(set(store.values)) == without_random(set(untouched.values))


def test_a_thread_whose_first_put_was_killed_is_deleted_without_a_trace() -> None:
    for at in itertools.count(1):
        store = MemoryStore()
        store.interrupt(at, kill)
        with contextlib.suppress(Killed):
            put_first(saver_on(store))
        if not store.interrupted:
            break
        saver_on(store).delete_thread("new")
        assert run(cast(StateStore, store), all_threads(Keys("checkpoints"))) == []


def without_random(keys: set[str]) -> set[str]:
    """``keys`` without those of pages and forks, whose names are random."""
    return {key for key in keys if "/p/" not in key and "/threads/" not in key}


def test_a_thread_goes_on_after_a_put_was_killed() -> None:
    store = prepared(redis=False)
    store.interrupt(put_calls(), kill)
    with pytest.raises(Killed):
        put_next(saver_on(store))
    saver = saver_on(store)
    latest = saver.get_tuple(config("t"))
    assert latest is not None
    assert latest.checkpoint["id"] == "c3"
    put(saver, "t", "c6", "c3", n=7)
    assert ids(saver, "t")[4:] == ["c6", "c3", "c2", "c1", "c0"]


def put_calls() -> int:
    store = prepared(redis=False)
    before = len(store.calls)
    put_next(saver_on(store))
    return len(store.calls) - before
