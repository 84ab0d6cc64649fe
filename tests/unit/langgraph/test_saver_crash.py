"""A process killed between any two state calls leaves a thread that can be read and gone on with."""

from collections.abc import Callable

import pytest
from memory_store import Killed, MemoryStore
from saver_cases import config, content, ids, put, saver_on

from dapr_runners.langgraph import DaprSaver

LARGE = "x" * 50_000


def prepared(redis: bool) -> MemoryStore:
    """A store with a thread of two namespaces, large values, writes and runs."""
    store = MemoryStore(redis=redis)
    saver = saver_on(store)
    parent = None
    for number in range(5):
        name = f"c{number}"
        run = {"run_id": f"run{number % 2}"}
        put(saver, "t", name, parent, metadata=run, kept=LARGE, unchanged={"kept": "1"}, n=number)
        saver.put_writes(
            config("t", name), [("n", number), ("kept", LARGE + name)], f"task{number}"
        )
        put(saver, "t", f"s{number}", namespace="sub:1", metadata=run, fresh=LARGE + name)
        parent = name
    put(saver, "other", "o1", n=1)
    return store


def put_first(saver: DaprSaver) -> None:
    put(saver, "new", "c0", metadata={"run_id": "run9"}, large=LARGE)


def put_next(saver: DaprSaver) -> None:
    put(saver, "t", "c5", "c4", kept=LARGE, unchanged={"kept": "1"}, n=5)


def put_writes(saver: DaprSaver) -> None:
    saver.put_writes(config("t", "c4"), [("n", 6), ("kept", LARGE)], "task9")


def delete_thread(saver: DaprSaver) -> None:
    saver.delete_thread("t")


def delete_for_runs(saver: DaprSaver) -> None:
    saver.delete_for_runs(["run1"])


def prune(saver: DaprSaver) -> None:
    saver.prune(["t"])


def copy_thread(saver: DaprSaver) -> None:
    saver.copy_thread("t", "other")


OPERATIONS = [put_first, put_next, put_writes, delete_thread, delete_for_runs, prune, copy_thread]
THREADS = ("t", "other", "new")


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
        first = len(store.calls)

        def kill(number: int, method: str, last: int = first + at) -> None:
            if number == last:
                raise Killed

        store.before = kill
        with pytest.raises(Killed):
            operation(saver_on(store))
        store.before = None

        readable = content(saver_on(store), *THREADS)
        assert {str(each.config) for each in readable} <= {
            str(each.config) for each in [*before, *after]
        }
        operation(saver_on(store))
        assert content(saver_on(store), *THREADS) == after, f"killed at call {at}"
        assert without_random(set(store.values)) >= without_random(remaining)


@pytest.mark.parametrize("operation", [delete_thread, delete_for_runs, prune])
def test_a_deletion_killed_at_any_call_leaves_no_document_behind_once_repeated(
    operation: Callable[[DaprSaver], None],
) -> None:
    untouched = prepared(redis=False)
    operation(saver_on(untouched))
    calls = len(untouched.calls)
    for at in range(1, calls + 1):
        store = prepared(redis=False)
        first = len(store.calls)
        if first + at > calls:
            break

        def kill(number: int, method: str, last: int = first + at) -> None:
            if number == last:
                raise Killed

        store.before = kill
        with pytest.raises(Killed):
            operation(saver_on(store))
        store.before = None
        operation(saver_on(store))
        assert without_random(set(store.values)) == without_random(set(untouched.values))


def without_random(keys: set[str]) -> set[str]:
    """``keys`` without those of pages and forks, whose names are random."""
    return {key for key in keys if "/p/" not in key and "/threads/" not in key}


def test_a_thread_goes_on_after_a_put_was_killed() -> None:
    store = prepared(redis=False)
    first = len(store.calls)

    def kill(number: int, method: str) -> None:
        if number > first and method == "replace":
            raise Killed

    store.before = kill
    with pytest.raises(Killed):
        put_next(saver_on(store))
    store.before = None
    saver = saver_on(store)
    latest = saver.get_tuple(config("t"))
    assert latest is not None
    assert latest.checkpoint["id"] == "c4"
    put(saver, "t", "c6", "c4", n=7)
    assert [name for name in ids(saver, "t") if name[0] == "c"] == [
        "c6",
        "c4",
        "c3",
        "c2",
        "c1",
        "c0",
    ]
