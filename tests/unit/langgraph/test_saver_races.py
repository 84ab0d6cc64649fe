"""Two processes at work on one thread, in every order of their state calls that has one of them do
all its work between two calls of the other."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.base import CheckpointTuple
from memory_store import MemoryStore
from saver_cases import config, content, put, saver_on
from saver_operations import (
    LARGE,
    OPERATIONS,
    THREADS,
    copy_thread,
    delete_for_runs,
    delete_thread,
    prepared,
    prune,
    put_next,
)

from dapr_runners.langgraph import DaprSaver

NAMESPACES = ("", "sub:1", "sub:2")
Content = dict[tuple[str, str], list[CheckpointTuple]]


def put_other(saver: DaprSaver) -> None:
    run = {"run_id": "run1"}
    put(saver, "t", "c7", "c3", metadata=run, kept=LARGE, unchanged={"kept": "1"}, n=7)


def put_below(saver: DaprSaver) -> None:
    put(saver, "t", "c55", namespace="sub:2", metadata={"run_id": "run1"}, n=7)


def put_new(saver: DaprSaver) -> None:
    put(saver, "new", "c1", metadata={"run_id": "run9"}, n=7)


def put_more_writes(saver: DaprSaver) -> None:
    saver.put_writes(config("t", "c3"), [("n", 7)], "task7")


def delete_new(saver: DaprSaver) -> None:
    saver.delete_thread("new")


FIRST = [*OPERATIONS, put_other, put_below]
SECOND = [*OPERATIONS, put_other, put_below, put_new, put_more_writes, delete_new]


@pytest.mark.parametrize("redis", [False, True], ids=["sql", "redis"])
@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", FIRST)
def test_each_namespace_is_as_if_one_came_after_the_other(
    first: Callable[[DaprSaver], None], second: Callable[[DaprSaver], None], redis: bool
) -> None:
    def in_order(*operations: Callable[[DaprSaver], None]) -> Content:
        store = prepared(redis)
        for operation in operations:
            operation(primed(store))
        return everything(store)

    expected = [in_order(first, second), in_order(second, first)]
    if (first, second) == (copy_thread, delete_for_runs):
        # What a copy has read before the deletion, it may write after it.
        expected.append(in_order(first))
    for at in itertools.count(1):
        store = prepared(redis)
        saver = primed(store)
        store.interrupt(at, functools.partial(meet, second, store))
        first(saver)
        if not store.interrupted:
            break
        seen = everything(store)
        for namespace in {*seen, *expected[0], *expected[1]}:
            allowed = [each.get(namespace) for each in expected]
            assert seen.get(namespace) in allowed, f"{namespace}, met before call {at}"


def meet(operation: Callable[[DaprSaver], None], store: MemoryStore) -> None:
    operation(primed(store))


def primed(store: MemoryStore) -> DaprSaver:
    """A saver that has just read the thread, as it does when a graph is called."""
    saver = saver_on(store)
    saver.get_tuple(config("t"))
    return saver


def everything(store: MemoryStore) -> Content:
    """What can be seen of each namespace, by listing its thread, and by listing all threads."""
    saver = saver_on(store)
    seen: Content = {}
    for each in content(saver, *THREADS):
        configurable = each.config["configurable"]
        place = (configurable["thread_id"], configurable["checkpoint_ns"])
        seen.setdefault(place, []).append(each)
    for thread, namespace in itertools.product(THREADS, NAMESPACES):
        latest = saver.get_tuple(config(thread, namespace=namespace))
        assert latest == next(iter(saver.list(config(thread, namespace=namespace))), None)
        assert (thread, namespace) in seen or latest is None
    listed = sorted(str(each.config) for each in saver.list(None))
    assert listed == sorted(str(each.config) for found in seen.values() for each in found)
    saver.delete_for_runs(["run0", "run1", "run9"])
    assert not any("run_id" in each.metadata for each in content(saver, *THREADS))
    return seen


def latest(saver: DaprSaver) -> list[Any]:
    found = saver.get_tuple(config("t"))
    return [found] if found else []


def named(saver: DaprSaver) -> list[Any]:
    found = saver.get_tuple(config("t", "c2"))
    return [found] if found else []


def listed(saver: DaprSaver) -> list[Any]:
    return list(saver.list(config("t")))


def history(saver: DaprSaver) -> list[Any]:
    return [saver.get_delta_channel_history(config=config("t"), channels=["n", "kept"])]


@pytest.mark.parametrize("redis", [False, True], ids=["sql", "redis"])
@pytest.mark.parametrize("change", [delete_thread, delete_for_runs, prune, put_next])
@pytest.mark.parametrize("read", [latest, named, listed, history])
def test_a_reader_sees_what_was_or_what_is(
    read: Callable[[DaprSaver], list[Any]], change: Callable[[DaprSaver], None], redis: bool
) -> None:
    store = prepared(redis)
    before = read(saver_on(store))
    change(saver_on(store))
    after = read(saver_on(store))
    for at in itertools.count(1):
        store = prepared(redis)
        store.interrupt(at, functools.partial(meet, change, store))
        seen = read(saver_on(store))
        if not store.interrupted:
            break
        if read is listed:
            # A list is read bit by bit: what is removed meanwhile may or may not be in it.
            assert all(each in before or each in after for each in seen)
        elif read is history:
            assert seen[0].keys() == before[0].keys()
        else:
            assert seen in (before, after, [])
