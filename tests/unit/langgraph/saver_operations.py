"""A thread with everything a thread can have, and what can be done to it."""

import functools

from memory_store import MemoryStore
from saver_cases import config, put, saver_on

from dapr_runners.langgraph import DaprSaver

LARGE = "x" * 60


def prepared(redis: bool) -> MemoryStore:
    """A store with a thread of two namespaces, large values, writes and runs."""
    return _prepare(redis).clone()


@functools.cache
def _prepare(redis: bool) -> MemoryStore:
    store = MemoryStore(redis=redis)
    saver = saver_on(store)
    parent = None
    for number in range(4):
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
    put(saver, "t", "c4", "c3", kept=LARGE, unchanged={"kept": "1"}, n=4)


def put_writes(saver: DaprSaver) -> None:
    saver.put_writes(config("t", "c3"), [("n", 6), ("kept", LARGE)], "task9")


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
