"""The events of ``run_async``: which, in which order, and under which ids."""

from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from run_helpers import MakeRunner, Node, State, chain, collect, without_replayed

from dapr_runners.langgraph import StepRetry


def steps(events: list[dict[str, Any]]) -> list[Any]:
    """What the events tell of steps, in short."""
    return [
        (event["type"].removeprefix("step_"), event["step"], event.get("nodes") or event["node"])
        for event in events
        if event["type"].startswith("step_")
    ]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def test_a_chain(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a"), Node("b")))
    events = await collect(runner.run_async({"x": 1}, thread_id="t", run_id="chain"))
    assert [(event["type"], event.get("data")) for event in events] == [
        ("workflow_started", None),
        ("values", {"x": 1, "log": []}),
        ("step_planned", None),
        ("updates", {"a": {"log": ["a"]}}),
        ("values", {"x": 1, "log": ["a"]}),
        ("step_completed", None),
        ("step_planned", None),
        ("updates", {"b": {"log": ["b"]}}),
        ("values", {"x": 1, "log": ["a", "b"]}),
        ("step_completed", None),
        ("workflow_completed", None),
    ]
    assert steps(events) == [
        ("planned", 1, ["a"]),
        ("completed", 1, "a"),
        ("planned", 2, ["b"]),
        ("completed", 2, "b"),
    ]
    first, last = events[0], events[-1]
    assert (first["thread_id"], first["graph_name"]) == ("t", runner.name)
    assert (last["output"], last["steps"], last["status"]) == (
        {"x": 1, "log": ["a", "b"]},
        2,
        "completed",
    )
    assert {event["workflow_id"] for event in events} == {"chain"}


def in_parallel(*nodes: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("join", Node("join"))
    for node in nodes:
        builder.add_node(node.name, node)
        builder.add_edge(START, node.name)
    builder.add_edge([node.name for node in nodes], "join")
    return builder.compile()


async def test_parallel_steps(make_runner: MakeRunner) -> None:
    runner = make_runner(in_parallel(Node("a"), Node("b"), Node("c")))
    events = steps(await collect(runner.run_async({"x": 1})))
    assert events[0] == ("planned", 1, ["a", "b", "c"])
    assert sorted(events[1:4]) == [("completed", 1, name) for name in "abc"]
    assert events[4:] == [("planned", 2, ["join"]), ("completed", 2, "join")]


def with_subgraphs() -> Any:
    builder = StateGraph(State)
    for name in ("left", "right"):
        builder.add_node(name, chain(Node("one"), Node("two")))
        builder.add_edge(START, name)
    return builder.compile()


async def test_steps_inside_subgraphs(make_runner: MakeRunner) -> None:
    runner = make_runner(with_subgraphs())
    events = steps(await collect(runner.run_async({"log": []})))
    assert events[0] == ("planned", 1, ["left", "right"])
    for side in ("left", "right"):
        inside = [event for event in events[1:] if side in str(event[2])]
        assert inside == [
            ("planned", 1, [f"{side}/one"]),
            ("completed", 1, f"{side}/one"),
            ("planned", 2, [f"{side}/two"]),
            ("completed", 2, f"{side}/two"),
            ("completed", 1, side),
        ]


async def test_chunks_of_subgraphs_have_a_namespace(make_runner: MakeRunner) -> None:
    runner = make_runner(with_subgraphs())
    events = await collect(runner.run_async({"log": []}, stream_mode="updates", subgraphs=True))
    places = [event.get("namespace", ()) for event in events if event["type"] == "updates"]
    inside = sorted(place[0].partition(":")[0] for place in places if place)
    assert inside == ["left", "left", "right", "right"]
    assert places.count(()) == 2


@pytest.mark.parametrize("graph", [lambda: in_parallel(Node("a"), Node("b")), with_subgraphs])
async def test_ids_are_unique_and_stable(make_runner: MakeRunner, graph: Any) -> None:
    runner = make_runner(graph())
    first = await collect(runner.run_async({"log": []}, run_id=f"ids-{runner.name}"))
    again = await collect(runner.run_async({"log": []}, run_id=f"ids-{runner.name}"))
    assert first[-1]["type"] == "workflow_completed"
    assert len({event["id"] for event in first}) == len(first)
    by_id = {event["id"]: event for event in without_replayed(first)}
    assert {event["id"]: event for event in without_replayed(again)} == by_id
    assert {event["replayed"] for event in again} == {True}


def bad(state: State) -> State:
    raise ValueError("bad")


async def test_a_failure(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a"), bad))
    events = await collect(runner.run_async({"x": 1}))
    assert steps(events)[-2:] == [("planned", 2, ["bad"]), ("failed", 2, "bad")]
    last = events[-1]
    assert (last["type"], last["status"]) == ("workflow_failed", "failed")
    assert last["error"]["error_type"] == "ValueError"
    assert last["error"]["message"] == "bad"
    assert "in bad" in last["error"]["stack_trace"]
    assert type(last["exception"]) is ValueError


async def test_a_failure_beside_others(make_runner: MakeRunner) -> None:
    builder = StateGraph(State)
    builder.add_node("bad", bad)
    builder.add_node("good", Node("good"))
    builder.add_edge(START, "bad")
    builder.add_edge(START, "good")
    events = await collect(make_runner(builder.compile()).run_async({"x": 1}))
    assert ("failed", 1, "bad") in steps(events)
    assert kinds(events)[-1] == "workflow_failed"


def ask(state: State) -> State:
    return {"log": [interrupt({"question": "ok?"})]}


async def test_a_question_and_its_answer(make_runner: MakeRunner) -> None:
    runner = make_runner(chain(Node("a"), ask, Node("b")))
    asked = await collect(runner.run_async({"x": 1}, thread_id="t"))
    last = asked[-1]
    assert (last["type"], last["status"]) == ("workflow_interrupted", "interrupted")
    assert [question.value for question in last["interrupts"]] == [{"question": "ok?"}]
    assert last["output"]["log"] == ["a"]
    assert steps(asked)[-1] == ("interrupted", 2, "ask")
    answered = await collect(runner.run_async(Command(resume="yes"), thread_id="t"))
    assert answered[0]["workflow_id"] != asked[0]["workflow_id"]
    assert answered[-1]["output"] == {"x": 1, "log": ["a", "yes", "b"]}
    assert steps(answered)[:2] == [("planned", 2, ["ask"]), ("completed", 2, "ask")]


class Flaky(Node):
    """Fails the first two times."""

    def __call__(self, state: State) -> dict[str, Any]:
        update = super().__call__(state)
        if self.executions < 3:
            raise ConnectionError("flaky")
        return update


@pytest.mark.parametrize("beside", [(), (Node("beside"),)], ids=["alone", "beside another"])
async def test_retries(make_runner: MakeRunner, beside: Any) -> None:
    flaky = Flaky("flaky")
    retry = StepRetry(max_attempts=3, first_interval=0.01, backoff=1)
    runner = make_runner(in_parallel(flaky, *beside), retry=retry)
    events = await collect(runner.run_async({"x": 1}))
    about = [event for event in events if event.get("node") == "flaky"]
    assert [(event["type"], event["attempt"]) for event in about] == [
        ("step_retry", 2),
        ("step_retry", 3),
        ("step_completed", 3),
    ]
    assert {event["after"] for event in about[:2]} == {0.01}
    assert kinds(events)[-1] == "workflow_completed"


async def test_retries_that_do_not_help(make_runner: MakeRunner) -> None:
    retry = StepRetry(max_attempts=2, first_interval=0, retry_on=[ValueError])
    events = await collect(make_runner(chain(bad), retry=retry).run_async({"x": 1}))
    about = [(event["type"], event["attempt"]) for event in events if event.get("node") == "bad"]
    assert about == [("step_retry", 2), ("step_failed", 2)]


async def test_several_runners_in_one_process(make_runner: MakeRunner) -> None:
    one, two = make_runner(chain(Node("one"))), make_runner(chain(Node("two")))
    for runner, name in ((one, "one"), (two, "two"), (one, "one")):
        events = await collect(runner.run_async({"x": 1}))
        assert events[0]["graph_name"] == runner.name
        assert events[-1]["output"] == {"x": 1, "log": [name]}
