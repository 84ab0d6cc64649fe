"""A run id given by the caller names exactly one run, for ever."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from run_helpers import Gate, MakeRunner, Node, chain, collect

from dapr_runners.engine import InvalidRunIdError, InvalidThreadIdError, RunIdInUseError


def output(events: list[dict[str, Any]]) -> Any:
    assert events[-1]["type"] == "workflow_completed"
    return events[-1]["output"]


@pytest.fixture
def new_id() -> str:
    return f"order-{uuid4().hex[:12]}"


@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}], ids=["no thread", "thread"])
async def test_the_same_call_gets_the_same_run_again_and_again(
    make_runner: MakeRunner, thread: Any, new_id: str
) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    first = await collect(runner.run_async({"x": 1}, run_id=new_id, **thread))
    again = await collect(runner.run_async({"x": 1}, run_id=new_id, **thread))
    assert output(first) == output(again) == {"x": 1, "log": ["node"]}
    assert [event["id"] for event in first] == [event["id"] for event in again]
    assert {event["workflow_id"] for event in (*first, *again)} == {new_id}
    assert first[0]["thread_id"] == thread.get("thread_id")
    assert node.executions == 1


async def test_of_racing_callers_one_names_the_run(make_runner: MakeRunner, new_id: str) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    calls = [collect(runner.run_async({"x": x}, run_id=new_id)) for x in range(6)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    refused = [outcome for outcome in outcomes if isinstance(outcome, RunIdInUseError)]
    assert len(refused) == 5
    assert node.executions == 1


async def test_it_is_attached_to_while_it_is_active(make_runner: MakeRunner, new_id: str) -> None:
    gate = Gate()
    runner = make_runner(chain(gate))
    one = asyncio.create_task(collect(runner.run_async({"x": 1}, run_id=new_id)))
    await asyncio.to_thread(gate.wait_until_entered)
    two = asyncio.create_task(collect(runner.run_async({"x": 1}, workflow_id=new_id)))
    gate.open()
    assert output(await one) == output(await two)
    assert gate.executions == 1


@pytest.mark.parametrize("thread", [{}, {"thread_id": "t"}], ids=["no thread", "thread"])
async def test_another_input_is_refused(make_runner: MakeRunner, thread: Any, new_id: str) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    await collect(runner.run_async({"x": 1}, run_id=new_id, **thread))
    with pytest.raises(RunIdInUseError) as refused:
        await collect(runner.run_async({"x": 2}, run_id=new_id, **thread))
    assert str(refused.value) == (
        f"The run id {new_id!r} already names a run of another runner or with another input, "
        "and a run id names one run for ever. Nothing was started. Use a new run id, or the same "
        "input to attach to that run."
    )
    assert refused.value.run_id == new_id
    assert node.executions == 1


async def test_another_thread_is_refused(make_runner: MakeRunner, new_id: str) -> None:
    runner = make_runner(chain(Node("node")))
    await collect(runner.run_async({"x": 1}, run_id=new_id, thread_id="one"))
    with pytest.raises(RunIdInUseError):
        await collect(runner.run_async({"x": 1}, run_id=new_id, thread_id="two"))


async def test_another_runner_is_refused(make_runner: MakeRunner, new_id: str) -> None:
    one, two = make_runner(chain(Node("one"))), make_runner(chain(Node("two")))
    await collect(one.run_async({"x": 1}, run_id=new_id))
    with pytest.raises(RunIdInUseError):
        await collect(two.run_async({"x": 1}, run_id=new_id))


async def test_it_is_known_after_later_turns_of_its_thread(
    make_runner: MakeRunner, new_id: str
) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    first = await collect(runner.run_async({"x": 1}, run_id=new_id, thread_id="t"))
    await collect(runner.run_async({"x": 2}, thread_id="t"))
    again = await collect(runner.run_async({"x": 1}, run_id=new_id, thread_id="t"))
    assert output(again) == output(first) == {"x": 1, "log": ["node"]}
    assert node.executions == 2


async def test_it_is_known_to_the_next_process(make_runner: MakeRunner, new_id: str) -> None:
    node = Node("node")
    before = make_runner(chain(node))
    first = await collect(before.run_async({"x": 1}, run_id=new_id))
    before.shutdown()
    after = make_runner(chain(node), name=before.name)
    assert output(await collect(after.run_async({"x": 1}, run_id=new_id))) == output(first)
    assert node.executions == 1


@pytest.mark.parametrize("bad", ["", "a||b", "a/b", "x" * 65, "é", "a b"])
async def test_an_id_that_dapr_would_refuse(make_runner: MakeRunner, bad: str) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    with pytest.raises(InvalidRunIdError, match=r"Use 1 to 64\s+letters, digits, '-' and '_'."):
        await collect(runner.run_async({"x": 1}, run_id=bad))
    assert node.executions == 0


def test_a_thread_that_is_no_text_is_refused(make_runner: MakeRunner) -> None:
    node = Node("node")
    runner = make_runner(chain(node))
    with pytest.raises(InvalidThreadIdError, match="is no valid Unicode text"):
        runner.invoke({"x": 1}, thread_id="\ud800")
    assert node.executions == 0
