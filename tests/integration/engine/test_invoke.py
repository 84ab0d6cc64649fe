"""``invoke`` is told of the end of its run alone, and gives what LangGraph's own gives."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from run_helpers import Gate, MakeRunner, Node, State, chain
from test_processes import callers_of, worker_of

from dapr_runners.engine import Overview, RunCancelledError
from engines import Engine

MANY = 80
"""More supersteps than a caller lets records gather for."""


def nothing(state: State) -> None:
    """A last node without a word."""


def counting(steps: int) -> Any:
    """A graph of ``steps`` supersteps, of which only the first changes the state."""
    builder: Any = StateGraph(State)
    before = START
    for n in range(steps):
        node: Any = Node("first") if n == 0 else nothing
        builder.add_node(f"n{n}", node)
        builder.add_edge(before, f"n{n}")
        before = f"n{n}"
    return builder.compile()


def ask_one(state: State) -> State:
    return {"log": [interrupt("one?")]}


def ask_two(state: State) -> State:
    return {"log": [interrupt({"two": ["?"]})]}


def asking(saver: Any = None) -> Any:
    """A graph that asks twice in one superstep, and has done something beside."""
    builder: Any = StateGraph(State)
    nodes = {"one": ask_one, "beside": Node("beside"), "two": ask_two}
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
    return builder.compile(checkpointer=saver)


def told(result: Any) -> tuple[Any, list[Any]]:
    """The values of a result, and what it asks."""
    values = dict(result)
    return values, values.pop("__interrupt__")


@pytest.mark.parametrize("steps", [1, 2, MANY])
async def test_the_last_values_are_found_wherever_they_are(
    make_runner: MakeRunner, steps: int
) -> None:
    graph: Any = counting(steps)
    runner = make_runner(graph)
    config: Any = {"recursion_limit": 2 * MANY}
    plain = graph.invoke({"x": 1}, config)
    assert plain["log"] == ["first"]
    assert await asyncio.to_thread(runner.invoke, {"x": 1}, config) == plain
    assert await runner.ainvoke({"x": 1}, config) == plain


async def test_batches_too(make_runner: MakeRunner) -> None:
    runner = make_runner(counting(2))
    inputs: list[Any] = [{"x": x} for x in range(3)]
    wanted = [{"x": x, "log": ["first"]} for x in range(3)]
    assert await asyncio.to_thread(runner.batch, inputs) == wanted
    assert await runner.abatch(inputs) == wanted


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_all_that_is_asked_at_once_is_there(make_runner: MakeRunner, version: str) -> None:
    config: Any = {"configurable": {"thread_id": "t"}}
    plain: Any = asking(InMemorySaver())
    runner = make_runner(asking())
    own = plain.invoke({"x": 1}, config, version=version)
    ours = runner.invoke({"x": 1}, config, version=version)
    if version == "v2":
        assert ours.value == own.value
        asked, own_asked = list(ours.interrupts), list(own.interrupts)
    else:
        values, asked = told(ours)
        own_values, own_asked = told(own)
        assert values == own_values
    # Which of two steps at once asks first is by chance.
    ids = {repr(each.value): each.id for each in asked}
    assert sorted(ids) == sorted(repr(each.value) for each in own_asked)
    answers = {ids["'one?'"]: "1", ids["{'two': ['?']}"]: "2"}
    result = runner.invoke(Command(resume=answers), config)
    assert sorted(result["log"]) == ["1", "2", "beside"]


@pytest.mark.parametrize("mode", ["updates", ["updates", "values"]])
def test_other_modes_give_all_chunks(make_runner: MakeRunner, mode: Any) -> None:
    graph: Any = chain(Node("first"), Node("last"))
    runner = make_runner(graph)
    plain = graph.invoke({"x": 1}, stream_mode=mode)
    assert runner.invoke({"x": 1}, stream_mode=mode) == plain


def test_what_a_run_raises_is_raised(make_runner: MakeRunner) -> None:
    def fail(state: State) -> State:
        raise LookupError("not found")

    with pytest.raises(LookupError, match="not found"):
        make_runner(chain(Node("first"), fail)).invoke({"x": 1})


def test_a_late_caller_gets_the_result(make_runner: MakeRunner) -> None:
    gate = Gate()
    runner = make_runner(chain(Node("first"), gate, Node("last")))
    config = {"configurable": {"thread_id": "t"}}
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(runner.invoke, {"x": 1}, config)
        gate.wait_until_entered()
        two = pool.submit(runner.invoke, {"x": 1}, config)
        gate.open()
        wanted = {"x": 1, "log": ["first", "gate", "last"]}
        assert [one.result(), two.result()] == [wanted, wanted]


@pytest.mark.parametrize("operation", ["cancel", "terminate"])
async def test_what_others_end_is_noticed(make_runner: MakeRunner, operation: str) -> None:
    """Of which nothing is told in this process."""
    gate = Gate()
    runner = make_runner(chain(gate))
    others = Overview(runner.store, runner.worker)
    before = set(others.ids())
    waiting = asyncio.create_task(runner.ainvoke({"x": 1}))
    await asyncio.to_thread(gate.wait_until_entered)
    (run,) = set(others.ids()) - before
    await getattr(others, operation)(run)
    with pytest.raises(RunCancelledError):
        await waiting
    gate.open()


async def test_a_run_that_other_processes_work_on(engine: Engine, tmp_path: Path) -> None:
    """Asks its caller, and goes on when answered."""
    thread = {"configurable": {"thread_id": "t"}}
    with (
        engine.sidecar(tmp_path) as sidecar,
        worker_of(sidecar, tmp_path) as worker,
        callers_of(sidecar) as connect,
    ):
        runner = connect("asking")
        values, asked = told(await runner.ainvoke({"x": 1}, thread))
        assert values == {"x": 1, "log": [worker.pid, "beside"]}
        assert [each.value for each in asked] == ["go on?"]
        result = await runner.ainvoke(Command(resume="yes"), thread)
        assert result == {"x": 1, "log": [worker.pid, "yes", "beside", "last"]}
