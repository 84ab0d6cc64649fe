"""Callers that leave a stream as soon as it asks something, and answer, as people's programs do."""

from contextlib import aclosing
from typing import Any, cast

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from place import Place
from run_helpers import MakeRunner, State, chain

from dapr_runners.engine import Worker

pytestmark = pytest.mark.timeout(240)
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def first(state: State) -> State:
    return {"log": [interrupt("first?")]}


def second(state: State) -> State:
    return {"log": [interrupt("second?")]}


def third(state: State) -> State:
    return {"log": [interrupt("third?")]}


def flat(saver: Any) -> Any:
    return chain(first, second, third, checkpointer=saver)


def nested(saver: Any) -> Any:
    builder: Any = StateGraph(State)
    builder.add_node("inner", chain(first, second, third))
    builder.add_edge(START, "inner")
    return builder.compile(checkpointer=saver)


def parallel(saver: Any) -> Any:
    builder: Any = StateGraph(State)
    for node in (first, second, third):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "first")
    builder.add_edge(START, "second")
    builder.add_edge(["first", "second"], "third")
    return builder.compile(checkpointer=saver)


GRAPHS = pytest.mark.parametrize("build", [flat, nested, parallel])
MODES = pytest.mark.parametrize(
    "arguments",
    [
        {"stream_mode": "updates"},
        {"stream_mode": "values"},
        {"stream_mode": ["updates", "messages"]},
        {"stream_mode": "updates", "subgraphs": True},
        {"stream_mode": "values", "version": "v2"},
    ],
    ids=["updates", "values", "live", "subgraphs", "v2"],
)


def interrupts_in(chunk: Any) -> list[Any]:
    data: Any = cast(Any, chunk[-1] if isinstance(chunk, tuple) else chunk)
    if not isinstance(data, dict):
        return []
    told = cast(dict[str, Any], data)
    return list(told.get("interrupts") or told.get("__interrupt__") or ())


def answer_all(callers: Any, **arguments: Any) -> list[tuple[str, tuple[str, ...]]]:
    """Answers "yes" to all questions, each by the next of ``callers``: what was asked, and what was
    next then."""
    seen: list[tuple[str, tuple[str, ...]]] = []
    input: Any = {"log": []}
    for _ in range(8):
        caller = next(callers)
        asked = None
        for chunk in caller.stream(input, CONFIG, **arguments):
            if asked := interrupts_in(chunk):
                break
        if not asked:
            return seen
        seen.append((asked[0].value, caller.get_state(CONFIG).next))
        input = Command(resume={asked[0].id: "yes"})
    return seen


def forever(*callers: Any) -> Any:
    while True:
        yield from callers


@GRAPHS
@MODES
def test_each_answer_is_a_turn_of_its_own(
    make_runner: MakeRunner, build: Any, arguments: dict[str, Any]
) -> None:
    plain = answer_all(forever(build(InMemorySaver())), **arguments)
    runner = make_runner(build(InMemorySaver()))
    asked = answer_all(forever(runner), **arguments)
    assert [question for question, _ in asked].count("third?") == 1
    if build is parallel:  # which of the two asks first is not fixed
        assert {question for question, _ in asked} == {question for question, _ in plain}
    else:
        assert asked == plain


@pytest.mark.parametrize("arguments", [{"stream_mode": "updates"}, {"stream_mode": "values"}])
def test_the_same_answer_to_another_question_is_another_call(
    make_runner: MakeRunner,
    build_runner: MakeRunner,
    place: Place,
    arguments: dict[str, Any],
) -> None:
    saver = InMemorySaver()
    runner = make_runner(flat(saver))
    callers = [runner]
    for _ in range(2):  # each as another process has it
        worker = Worker(f"127.0.0.1:{place.grpc_port}")
        callers.append(build_runner(flat(saver), name=runner.name, worker=worker))
        callers[-1].connect()
    asked: list[str] = []
    input: Any = {"log": []}
    for caller in (*callers, callers[1]):
        for chunk in caller.stream(input, CONFIG, **arguments):
            if found := interrupts_in(chunk):
                asked.append(found[0].value)
                break
        input = Command(resume="yes")
    assert asked == ["first?", "second?", "third?"]
    assert runner.get_state(CONFIG).values["log"] == ["yes"] * 3


@GRAPHS
@pytest.mark.parametrize("events", [False, True], ids=["astream", "run_async"])
async def test_an_asynchronous_stream_may_be_left_without_closing_it(
    make_runner: MakeRunner, build: Any, events: bool
) -> None:
    runner = make_runner(build(InMemorySaver()))
    asked: list[str] = []
    input: Any = {"log": []}
    for _ in range(8):
        found: list[Any] = []
        if events:
            stream = runner.run_async(input, config=CONFIG)
        else:
            stream = runner.astream(input, CONFIG, stream_mode="updates")
        async for chunk in stream:
            if found := interrupts_in(chunk.get("data") if events else chunk):
                break
        if not found:
            break
        asked.append(found[0].value)
        input = Command(resume={found[0].id: "yes"})
    assert sorted(set(asked)) == ["first?", "second?", "third?"]
    assert (await runner.aget_state(CONFIG)).values["log"] == ["yes"] * 3


async def test_who_leaves_before_is_given_the_result_by_the_same_call(
    make_runner: MakeRunner,
) -> None:
    ran: list[str] = []

    def one(state: State) -> State:
        ran.append("one")
        return {"log": ["one"]}

    def two(state: State) -> State:
        return {"log": ["two"]}

    runner = make_runner(chain(one, two, checkpointer=InMemorySaver()))
    streams: list[Any] = [runner.astream({"log": []}, CONFIG, stream_mode="updates")]
    async with aclosing(streams[0]) as stream:
        async for _chunk in stream:
            break
    chunks = [chunk async for chunk in runner.astream({"log": []}, CONFIG, stream_mode="updates")]
    assert chunks == [{"one": {"log": ["one"]}}, {"two": {"log": ["two"]}}]
    assert ran == ["one"]


def test_who_leaves_with_the_last_chunk_begins_a_turn_with_the_same_call(
    make_runner: MakeRunner,
) -> None:
    def one(state: State) -> State:
        return {"log": ["one"]}

    runner = make_runner(chain(one, checkpointer=InMemorySaver()))
    for _ in range(2):
        for _chunk in runner.stream({"log": []}, CONFIG, stream_mode="updates"):
            break
    assert runner.invoke({"log": []}, CONFIG)["log"] == ["one"] * 3
