"""A graph behaves the same with DaprSaver as with LangGraph's own saver in memory."""

import uuid
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from saver_graph import make, shape, turns, visible

from dapr_runners.langgraph import DaprSaver
from engines import Sidecar


@pytest.fixture
def saver(sidecar: Sidecar) -> DaprSaver:
    return DaprSaver()


def test_several_turns_look_the_same(saver: DaprSaver) -> None:
    assert turns(make(saver), "t") == turns(make(InMemorySaver()), "t")


def test_another_process_goes_on_where_one_stopped(saver: DaprSaver) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    make(saver).invoke({"messages": [("user", "red green")]}, config)
    later = make(DaprSaver())
    before = shape(later, config)
    assert before[0]["interrupts"] == [{"may": "GREEN"}]
    later.invoke(Command(resume=True), config)
    assert visible(later.get_state(config).values)["messages"][-1] == (
        "ai",
        "RED, GREEN, RED, GREEN",
    )


async def test_async_calls_look_the_same(saver: DaprSaver) -> None:
    seen: list[Any] = []
    for each in (saver, InMemorySaver()):
        graph = make(each)
        config: Any = {"configurable": {"thread_id": "t"}}
        answers: list[Any] = [
            visible(await graph.ainvoke({"messages": [("user", "red green")]}, config)),
            visible(await graph.ainvoke(Command(resume=True), config)),
            visible((await graph.aget_state(config)).values),
            [visible(state.values) async for state in graph.aget_state_history(config)],
        ]
        seen.append(answers)
    assert seen[0] == seen[1]


def test_all_namespaces_of_a_thread_are_listed_and_deleted(saver: DaprSaver) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    make(saver).invoke({"messages": [("user", "red green")]}, config)
    namespaces = {each.config["configurable"]["checkpoint_ns"] for each in saver.list(config)}
    assert "" in namespaces
    assert any(namespace.startswith("review:") for namespace in namespaces)
    saver.delete_thread("t")
    assert list(saver.list(config)) == []
    assert list(saver.list(None)) == []


def test_pruned_and_copied_threads_keep_their_state(saver: DaprSaver) -> None:
    graph = make(saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    for text in ("red", "green", "blue"):
        graph.invoke({"messages": [("user", text)]}, config)
        graph.invoke(Command(resume=True), config)
    state = graph.get_state(config)
    count = len(list(saver.list({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})))
    saver.prune(["t"])
    left = len(list(saver.list({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})))
    assert left < count
    assert graph.get_state(config).values == state.values
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    copied: Any = {"configurable": {"thread_id": "copy"}}
    assert graph.get_state(copied).values == state.values
    graph.invoke({"messages": [("user", "more")]}, copied)
    graph.invoke(Command(resume=True), copied)
    assert graph.get_state(copied).values["log"][: len(state.values["log"])] == state.values["log"]


def test_the_checkpoints_of_a_run_are_deleted_alone(saver: DaprSaver) -> None:
    graph = make(saver)
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    for run_id in (first, second):
        config: Any = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": run_id}}
        graph.invoke({"messages": [("user", "red")]}, config)
        graph.invoke(Command(resume=True), config)
    saver.delete_for_runs([second])
    found = list(saver.list({"configurable": {"thread_id": "t"}}))
    assert {each.metadata["run_id"] for each in found} == {first}
    assert graph.get_state({"configurable": {"thread_id": "t"}}).metadata["run_id"] == first
