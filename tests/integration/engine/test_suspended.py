"""A run whose workflow an operator suspends, with Dapr's own client."""

import asyncio

import pytest
from dapr.ext.workflow import DaprWorkflowClient
from place import Place
from run_helpers import Gate, MakeRunner, Node, chain, collect, eventually

pytestmark = pytest.mark.timeout(120)


async def test_suspended_and_resumed_twice_it_goes_on(
    make_runner: MakeRunner, place: Place
) -> None:
    gate = Gate()
    runner = make_runner(chain(gate, Node("after")))
    run = asyncio.ensure_future(collect(runner.run_async({"x": 1}, workflow_id=runner.name)))
    await asyncio.to_thread(gate.wait_until_entered)
    client = DaprWorkflowClient(host="127.0.0.1", port=str(place.grpc_port))

    def is_suspended() -> bool:
        state = client.get_workflow_state(runner.name)
        return state is not None and state.runtime_status.name == "SUSPENDED"

    for _ in range(2):
        client.pause_workflow(runner.name)
        await eventually(is_suspended)
    for _ in range(2):
        client.resume_workflow(runner.name)
    gate.open()
    events = await run
    assert events[-1]["output"] == {"x": 1, "log": ["gate", "after"]}
    client.close()
