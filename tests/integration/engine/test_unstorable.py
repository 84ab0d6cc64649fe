"""A value that cannot be stored: what is said, and what is left."""

import threading
from typing import Any

import pytest
from langgraph.func import task
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from run_helpers import MakeRunner, Node, State, chain, collect

from dapr_runners.state import UnstorableValueError, ValueTooLargeError


def opens(state: State) -> Any:
    return {"log": [{"lock": threading.Lock()}]}


def test_what_a_node_returns(make_runner: MakeRunner) -> None:
    first, last = Node("first"), Node("last")
    runner = make_runner(chain(first, opens, last))
    with pytest.raises(UnstorableValueError) as told:
        runner.invoke({"x": 1}, thread_id="t")
    assert str(told.value) == (
        "node 'opens', key 'log'[0]['lock'] is a _thread.lock, which cannot be stored: it belongs "
        "to this process. A value that could not be read back with its exact type is refused "
        "before anything is written, so this step is not recorded. Keep it outside the state, and "
        "open or make it where it is used."
    )
    assert [first.executions, last.executions] == [1, 0]
    state = runner.get_state({"configurable": {"thread_id": "t"}})
    assert state.values == {"x": 1, "log": ["first"]}


def test_a_value_over_the_limit(make_runner: MakeRunner) -> None:
    def brings(state: State) -> Any:
        return {"log": ["x" * 2000]}

    last = Node("last")
    runner = make_runner(chain(brings, last), max_value_size=1000)
    with pytest.raises(ValueTooLargeError) as told:
        runner.invoke({"x": 1})
    assert str(told.value) == (
        "node 'brings', key 'log' is a list of 2004 bytes as it is stored, and a value may have "
        "1000 here. It was refused before anything was written, so this step is not recorded. Keep "
        "it elsewhere and store where that is, or raise the runner's max_value_size."
    )
    assert (told.value.size, told.value.limit) == (2004, 1000)
    with pytest.raises(ValueTooLargeError, match="the input"):
        runner.invoke({"log": ["x" * 2000]})
    assert last.executions == 0
    assert make_runner(chain(brings), max_value_size=None).invoke({"x": 1})["log"]


def test_what_a_parallel_node_returns(make_runner: MakeRunner) -> None:
    builder = StateGraph(State)
    builder.add_node("opens", opens)
    builder.add_node("beside", Node("beside"))
    builder.add_edge(START, "opens")
    builder.add_edge(START, "beside")
    runner = make_runner(builder.compile())
    with pytest.raises(UnstorableValueError, match="node 'opens'"):
        runner.invoke({"x": 1})


def test_what_is_sent(make_runner: MakeRunner) -> None:
    builder = StateGraph(State)
    builder.add_node("first", Node("first"))
    builder.add_node("work", Node("work"))
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda _: [Send("work", threading.Lock())], ["work"])
    with pytest.raises(UnstorableValueError, match="node 'first'"):
        make_runner(builder.compile()).invoke({"x": 1})


async def test_in_the_events(make_runner: MakeRunner) -> None:
    events = await collect(make_runner(chain(opens)).run_async({"x": 1}))
    assert events[-1]["type"] == "workflow_failed"
    assert events[-1]["error"]["error_type"] == "UnstorableValueError"
    assert isinstance(events[-1]["exception"], UnstorableValueError)


@pytest.mark.parametrize(
    ("call", "where"),
    [
        ({"input": {"x": threading.Lock()}}, "the input"),
        ({"input": {}, "config": {"configurable": {"lock": threading.Lock()}}}, "config"),
        ({"input": {}, "context": {"lock": threading.Lock()}}, "context"),
    ],
    ids=["input", "config", "context"],
)
def test_what_a_call_is_given(make_runner: MakeRunner, call: Any, where: str) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    with pytest.raises(UnstorableValueError, match=where):
        runner.invoke(**call)
    assert node.executions == 0


@task
def opening_task() -> Any:
    return threading.Lock()


def calls(state: State) -> State:
    return {"log": [str(type(opening_task().result()))]}


def test_what_a_task_returns(make_runner: MakeRunner) -> None:
    last = Node("last")
    runner = make_runner(chain(calls, last))
    with pytest.raises(UnstorableValueError) as told:
        runner.invoke({"x": 1})
    assert str(told.value).startswith("the result of task 'opening_task' is a _thread.lock")
    assert last.executions == 0


async def test_what_a_task_of_a_parallel_node_returns(make_runner: MakeRunner) -> None:
    builder = StateGraph(State)
    builder.add_node("calls", calls)
    builder.add_node("beside", Node("beside"))
    builder.add_edge(START, "calls")
    builder.add_edge(START, "beside")
    with pytest.raises(UnstorableValueError, match="the result of task 'opening_task'"):
        await make_runner(builder.compile()).ainvoke({"x": 1})
