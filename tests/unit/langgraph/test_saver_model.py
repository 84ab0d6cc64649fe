"""Whatever is put, in whatever order, DaprSaver answers as LangGraph's own savers do."""

import sqlite3
from contextlib import closing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from memory_store import MemoryStore
from saver_cases import config, put, saver_on

NAMES = [f"c{number:02}" for number in range(12)]
names = st.sampled_from(NAMES)
thread_ids = st.sampled_from(["t", "t", "t", "Ü||/", "T"])
namespaces = st.sampled_from(["", "", "", "a:1|b:2"])
channels = st.sampled_from(["n", "__error__", "__interrupt__"])
puts = st.tuples(
    st.just("put"),
    thread_ids,
    namespaces,
    names,
    st.none() | names,
    st.sampled_from([1, 2]),
    st.sampled_from(["loop", "input"]),
)
writes = st.tuples(
    st.just("put_writes"),
    thread_ids,
    namespaces,
    names,
    st.sampled_from(["task1", "task2"]),
    st.lists(st.tuples(channels, st.integers(0, 3)), max_size=3, unique_by=lambda each: each[0]),
    st.sampled_from(["", "~p"]),
)
operations = st.lists(st.one_of(puts, writes), min_size=15, max_size=60)


@settings(max_examples=60, deadline=None, database=None)
@given(operations=operations)
def test_same_content_as_in_memory(operations: list[Any]) -> None:
    ours, theirs = saver_on(MemoryStore()), InMemorySaver()
    apply(ours, operations)
    apply(theirs, operations)
    for thread in ("t", "Ü||/", "T"):
        for namespace in ("", "a:1|b:2"):
            where = config(thread, namespace=namespace)
            assert ours.get_tuple(where) == theirs.get_tuple(where)
            assert list(ours.list(where)) == list(theirs.list(where))
            for name in NAMES:
                at = config(thread, name, namespace)
                assert ours.get_tuple(at) == theirs.get_tuple(at)


@settings(max_examples=60, deadline=None, database=None)
@given(
    operations=operations,
    thread=st.none() | thread_ids,
    namespace=st.none() | namespaces,
    before=st.none() | names,
    only=st.none() | names,
    limit=st.none() | st.integers(0, 5),
    wanted=st.dictionaries(
        st.sampled_from(["source", "step", "user"]), st.sampled_from(["loop", 1, 2, "u1"])
    ),
)
def test_lists_as_sqlite_does(
    operations: list[Any],
    thread: str | None,
    namespace: str | None,
    before: str | None,
    only: str | None,
    limit: int | None,
    wanted: dict[str, Any],
) -> None:
    where: Any = {"configurable": {"thread_id": thread}} if thread else None
    if where and namespace is not None:
        where["configurable"]["checkpoint_ns"] = namespace
    if where and only is not None:
        where["configurable"]["checkpoint_id"] = only
    until = config("any", before) if before else None
    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as connection:
        ours, theirs = saver_on(MemoryStore()), SqliteSaver(connection)
        found = []
        for saver in (ours, theirs):
            apply(saver, operations)
            found.append(list(saver.list(where, filter=wanted, before=until, limit=limit)))
    assert [name_of(each) for each in found[0]] == [name_of(each) for each in found[1]]
    if limit is None:
        assert places(found[0]) == places(found[1])


def apply(saver: BaseCheckpointSaver[Any], operations: list[Any]) -> None:
    for kind, thread, namespace, name, *rest in operations:
        if kind == "put":
            parent, step, source = rest
            metadata = {"step": step, "source": source, "user": f"u{step}"}
            put(saver, thread, name, parent, namespace, metadata, n=name, big="x" * 40)
        else:
            task, written, path = rest
            saver.put_writes(config(thread, name, namespace), written, task, path)


def name_of(each: CheckpointTuple) -> str:
    return each.config["configurable"]["checkpoint_id"]


def places(found: list[CheckpointTuple]) -> list[str]:
    return sorted(str(sorted(each.config["configurable"].items())) for each in found)


def test_pages_of_a_long_thread_are_read_as_far_as_asked() -> None:
    store = MemoryStore()
    saver = saver_on(store)
    for number in range(200):
        put(saver, "long", f"c{number:03}", n=number)
    store.calls.clear()
    newest = list(saver.list(config("long"), limit=3))
    assert [name_of(each) for each in newest] == ["c199", "c198", "c197"]
    assert len(store.calls) < 8


def test_a_list_goes_on_over_a_removal() -> None:
    store = MemoryStore()
    saver = saver_on(store)
    for number in range(100):
        put(saver, "t", f"c{number:03}", n=number)
    listing = iter(saver.list(config("t")))
    assert name_of(next(listing)) == "c099"
    saver_on(store).prune(["t"])
    put(saver_on(store), "t", "c100", n=100)
    assert len(list(listing)) < 99


def test_putting_again_does_not_grow_the_index() -> None:
    store = MemoryStore()
    saver = saver_on(store)
    for number in range(30):
        put(saver, "t", f"c{number:03}", n=number)
    content = store.clone().values
    for number in range(30):
        put(saver_on(store), "t", f"c{number:03}", n=number)
    assert {key: value for key, (value, _) in store.values.items()} == {
        key: value for key, (value, _) in content.items()
    }


def test_ids_that_do_not_come_in_order_are_sorted() -> None:
    saver = saver_on(MemoryStore())
    order = [5, 9, 3, 8, 1, 7, 2, 6, 0, 4]
    for number in order:
        put(saver, "t", f"c{number}", n=number)
    latest = saver.get_tuple(config("t"))
    assert latest is not None
    assert name_of(latest) == "c9"
    assert [name_of(each) for each in saver.list(config("t"))] == [
        f"c{n}" for n in range(9, -1, -1)
    ]


def test_of_a_write_recorded_twice_the_first_counts_however_many_there_are() -> None:
    store = MemoryStore()
    put(saver_on(store), "t", "c1", n=1)
    for value in (1, 2):
        for task in range(6):
            saver_on(store).put_writes(config("t", "c1"), [("n", value)], f"task{task}")
    found = saver_on(store).get_tuple(config("t"))
    assert found is not None
    assert found.pending_writes == [(f"task{task}", "n", 1) for task in range(6)]
