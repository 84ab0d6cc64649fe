"""A runner that only calls. Another worker object stands for the process that works."""

import asyncio
import gc
import time
import weakref
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from place import Place
from run_helpers import Gate, MakeRunner, Node, chain, collect, eventually

from dapr_runners.engine import RunCancelledError, RunnerNotStartedError, Worker


@pytest.fixture
def elsewhere(place: Place) -> Worker:
    """A worker that shares nothing with the process's own."""
    return Worker(f"127.0.0.1:{place.grpc_port}")


def test_a_call_waits_for_somebody_who_works(build_runner: MakeRunner, elsewhere: Worker) -> None:
    caller = build_runner(chain(Node("node")))
    caller.connect()
    stream = caller.stream({"x": 1}, {"configurable": {"thread_id": "t"}})
    node = Node("node")
    build_runner(chain(node), name=caller.name, worker=elsewhere).start()
    assert list(stream) == [{"node": {"log": ["node"]}}]
    assert node.executions == 1


async def test_it_attaches_and_cancels(build_runner: MakeRunner, elsewhere: Worker) -> None:
    gate = Gate()
    build_runner(chain(gate), name="attached to", worker=elsewhere).start()
    caller = build_runner(chain(Gate()), name="attached to")
    caller.connect()
    calls = [asyncio.create_task(collect(caller.run_async({"x": 1}, run_id="r"))) for _ in "ab"]
    await asyncio.to_thread(gate.wait_until_entered)
    caller.cancel("r")
    for call in calls:
        with pytest.raises(RunCancelledError):
            await call
    gate.open()
    assert gate.executions == 1


async def test_it_keeps_nothing_of_runs_that_others_work_on(
    build_runner: MakeRunner, elsewhere: Worker
) -> None:
    build_runner(chain(Node("node")), name="kept", worker=elsewhere).start()
    caller = build_runner(chain(Node("node")), name="kept")
    caller.connect()
    handler = BaseCallbackHandler()
    kept = weakref.ref(handler)
    config: Any = {"callbacks": [handler], "configurable": {"thread_id": "t"}}
    caller.invoke({"x": 1}, config)
    del handler, config

    def is_gone() -> bool:
        gc.collect()
        return kept() is None

    await eventually(is_gone)  # threads of the call may be about to end


def test_it_can_begin_to_work(build_runner: MakeRunner) -> None:
    runner = build_runner(chain(Node("node")))
    runner.connect()
    runner.connect()
    assert not runner.is_running
    runner.start()
    assert runner.is_running
    assert runner.invoke({"x": 1})["log"] == ["node"]


def test_it_can_be_shut_down(build_runner: MakeRunner) -> None:
    runner = build_runner(chain(Node("node")))
    runner.connect()
    runner.shutdown()
    with pytest.raises(RunnerNotStartedError):
        runner.invoke({"x": 1})


def test_a_process_that_works_on_another_runner_works_on_it_too(
    build_runner: MakeRunner, make_runner: MakeRunner
) -> None:
    """Its stream gets the work of all runners of the app."""
    make_runner(chain(Node("other")))
    runner = build_runner(chain(Node("node")))
    runner.connect()
    assert runner.invoke({"x": 1})["log"] == ["node"]


class SlowSaver(InMemorySaver):
    """Takes its time."""

    def put(self, *args: Any) -> Any:
        time.sleep(0.05)
        return super().put(*args)


def test_a_result_is_there_once_its_checkpoint_is(
    build_runner: MakeRunner, elsewhere: Worker
) -> None:
    """Also for a caller that finds the record of the end in the store."""
    saver, config = SlowSaver(), {"configurable": {"thread_id": "t"}}
    build_runner(
        chain(Node("node"), checkpointer=saver), name="slow saver", worker=elsewhere
    ).start()
    caller = build_runner(chain(Node("node"), checkpointer=saver), name="slow saver")
    caller.connect()
    for x in range(3):
        result = caller.invoke({"x": x}, config)
        assert caller.get_state(config).values == result
