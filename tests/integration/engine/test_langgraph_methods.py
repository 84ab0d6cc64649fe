"""LangGraph's own methods and arguments on a runner: with our saver, and with none."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from run_helpers import MakeRunner, Node, State, chain

THREAD = {"configurable": {"thread_id": "t"}}


def asking(state: State) -> State:
    return {"log": [interrupt("?")]}


# -- a graph without a checkpointer gets ours


def test_state_and_history(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a"), Node("b")))
    runner.invoke({"x": 1}, THREAD)
    assert runner.get_state(THREAD).values == {"x": 1, "log": ["a", "b"]}
    history = list(runner.get_state_history(THREAD))
    assert [state.metadata["step"] for state in history] == [2, 1, 0, -1]
    assert [state.metadata["step"] for state in runner.get_state_history(THREAD, limit=2)] == [2, 1]
    before = runner.get_state(history[2].config)
    assert before.next == ("a",)


async def test_state_and_history_async(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    await runner.ainvoke({"x": 1}, THREAD)
    assert (await runner.aget_state(THREAD)).values == {"x": 1, "log": ["a"]}
    assert len([state async for state in runner.aget_state_history(THREAD)]) == 3


def test_updates_of_the_state(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a"), asking, Node("b")))
    runner.invoke({"x": 1}, THREAD)
    runner.update_state(THREAD, {"x": 7})
    assert runner.get_state(THREAD).values["x"] == 7
    assert runner.invoke(Command(resume="yes"), THREAD) == {"x": 7, "log": ["a", "yes", "b"]}
    forked = runner.update_state(THREAD, {"log": ["as a"]}, as_node="a")
    assert runner.get_state(forked).next == ("asking",)


async def test_updates_of_the_state_async(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    await runner.aupdate_state(THREAD, {"x": 7})
    assert (await runner.ainvoke({"log": ["in"]}, THREAD)) == {"x": 7, "log": ["in", "a"]}


def test_blocking_and_async_calls_share_a_thread(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    runner.invoke({"x": 1}, THREAD)
    assert asyncio.run(runner.ainvoke({"x": 2}, THREAD)) == {"x": 2, "log": ["a", "a"]}
    assert runner.invoke({"x": 3}, THREAD)["log"] == ["a", "a", "a"]


def test_a_thread_id_as_an_argument(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    runner.invoke({"x": 1}, thread_id="t")
    assert runner.get_state(THREAD).values["x"] == 1


def test_without_a_thread_nothing_is_kept(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    assert runner.invoke({"x": 1}) == runner.invoke({"x": 1}) == {"x": 1, "log": ["a"]}


def test_a_thread_the_graph_is_bound_to(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")).with_config(configurable={"thread_id": "t"}))
    runner.invoke({"x": 1})
    assert runner.invoke({"x": 2}) == {"x": 2, "log": ["a", "a"]}
    assert runner.get_state(THREAD).values == {"x": 2, "log": ["a", "a"]}


def test_a_thread_that_has_a_number(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    runner.invoke({"x": 1}, {"configurable": {"thread_id": 7}})
    assert runner.invoke({"x": 2}, thread_id="7") == {"x": 2, "log": ["a", "a"]}


def test_an_own_saver_wants_a_thread(make_runner: MakeRunner) -> None:
    graph = chain(Node("a"), checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="thread_id") as plain:
        graph.invoke({"x": 1})
    with pytest.raises(ValueError, match="thread_id") as durable:
        make_runner(graph).invoke({"x": 1})
    assert str(durable.value) == str(plain.value)


# -- checkpointer=False keeps it off


def test_no_saver(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a"), checkpointer=False))
    for _ in range(2):
        assert runner.invoke({"x": 1}, THREAD) == {"x": 1, "log": ["a"]}
    with pytest.raises(ValueError, match="No checkpointer set"):
        runner.get_state(THREAD)


def test_a_question_without_a_saver(make_runner: MakeRunner) -> None:
    graph = chain(asking, checkpointer=False)
    asked = make_runner(graph).invoke({"x": 1}, THREAD)
    assert [question.value for question in asked["__interrupt__"]] == ["?"]
    assert asked.keys() == graph.invoke({"x": 1}, THREAD).keys()


# -- batches


def test_batch(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    inputs = [{"x": x} for x in range(3)]
    assert runner.batch(inputs) == [{"x": x, "log": ["a"]} for x in range(3)]
    configs = [{"configurable": {"thread_id": f"{x}"}} for x in range(3)]
    runner.batch(inputs, configs)
    assert [runner.get_state(config).values["x"] for config in configs] == [0, 1, 2]
    done = dict(runner.batch_as_completed(inputs))
    assert done == {x: {"x": x, "log": ["a"]} for x in range(3)}


async def test_abatch(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    inputs = [{"x": x} for x in range(3)]
    assert await runner.abatch(inputs) == [{"x": x, "log": ["a"]} for x in range(3)]


def test_errors_of_a_batch(make_runner: MakeRunner) -> None:
    def odd(state: State) -> State:
        if state["x"] % 2 == 0:
            raise ValueError(f"{state['x']} is even")
        return {"log": ["odd"]}

    results = make_runner(chain(odd)).batch([{"x": 0}, {"x": 1}], return_exceptions=True)
    assert isinstance(results[0], ValueError)
    assert results[1] == {"x": 1, "log": ["odd"]}


# -- streams and events


async def test_astream_events(make_runner: MakeRunner) -> None:
    graph = chain(Node("a"), Node("b"))
    plain = [event async for event in graph.astream_events({"x": 1}, version="v2")]
    runner = make_runner(graph)
    durable = [event async for event in runner.astream_events({"x": 1}, THREAD, version="v2")]

    def seen(events: list[Any], of_root: bool) -> list[Any]:
        # What the nodes do and what the caller is given come from two places.
        return [
            (event["event"], event["name"], event["data"].get("output"))
            for event in events
            if (event["name"] == "LangGraph") is of_root
        ]

    for of_root in (True, False):
        assert seen(durable, of_root) == seen(plain, of_root)
    roots = {event["run_id"] for event in durable if event["name"] == "LangGraph"}
    assert len(roots) == 1


@pytest.mark.parametrize("mode", ["values", "updates", ["values", "updates"], "tasks", "debug"])
def test_stream_modes(make_runner: MakeRunner, mode: Any) -> None:
    runner = make_runner(chain(Node("a"), Node("b")))
    chunks = list(runner.stream({"x": 1}, THREAD, stream_mode=mode))
    graph = chain(Node("a"), Node("b"), checkpointer=InMemorySaver())
    plain = list(graph.stream({"x": 1}, THREAD, stream_mode=mode))
    assert [type(chunk) for chunk in chunks] == [type(chunk) for chunk in plain]
    if mode in ("values", "updates"):
        assert chunks == plain


def test_an_unknown_argument(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a")))
    with pytest.raises(TypeError, match="unknown"):
        list(runner.stream({"x": 1}, unknown=1))


# -- context, callbacks, limits


@dataclass
class Context:
    user: str


def greeting(state: State, runtime: Runtime[Context]) -> State:
    return {"log": [f"hello {runtime.context.user}"]}


def with_context() -> Any:
    builder = StateGraph(State, context_schema=Context)
    builder.add_node("greeting", greeting)
    builder.add_edge(START, "greeting")
    return builder.compile()


@pytest.mark.parametrize("context", [Context("ann"), {"user": "ann"}])
def test_context(make_runner: MakeRunner, context: Any) -> None:
    runner = make_runner(with_context())
    assert runner.invoke({"x": 1}, THREAD, context=context)["log"] == ["hello ann"]
    other = runner.invoke({"x": 1}, THREAD, context=Context("bob"))
    assert other["log"] == ["hello ann", "hello bob"]


class Counting(BaseCallbackHandler):
    """Counts the chains that start and end."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended = 0

    def on_chain_start(self, serialized: Any, inputs: Any, *, name: str = "", **_: Any) -> None:
        self.started.append(name)

    def on_chain_end(self, outputs: Any, **_: Any) -> None:
        self.ended += 1


@pytest.mark.parametrize("is_async", [False, True])
def test_callbacks(make_runner: MakeRunner, is_async: bool) -> None:
    graph = chain(Node("a"), Node("b"))
    plain, durable = Counting(), Counting()
    graph.invoke({"x": 1}, {"callbacks": [plain]})
    runner = make_runner(graph)
    config = {**THREAD, "callbacks": [durable]}
    if is_async:
        asyncio.run(runner.ainvoke({"x": 1}, config))
    else:
        runner.invoke({"x": 1}, config)
    assert durable.started == plain.started
    assert durable.ended == plain.ended


def test_max_steps(make_runner: MakeRunner) -> None:
    builder = StateGraph(State)
    builder.add_node("again", Node("again"))
    builder.add_edge(START, "again")
    builder.add_edge("again", "again")
    runner = make_runner(builder.compile(), max_steps=3)
    with pytest.raises(GraphRecursionError, match="limit of 3"):
        runner.invoke({"x": 1}, THREAD)
    with pytest.raises(GraphRecursionError, match="limit of 5"):
        runner.invoke({"x": 1}, {**THREAD, "recursion_limit": 5})


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_durability(make_runner: MakeRunner, durability: Any) -> None:
    runner = make_runner(chain(Node("a"), Node("b")))
    runner.invoke({"x": 1}, THREAD, durability=durability)
    saved = [state.metadata["step"] for state in runner.get_state_history(THREAD)]
    assert saved == ([2] if durability == "exit" else [2, 1, 0, -1])
