"""The floor: workflows of bare no-op activities, on the same sidecar and in the same worker."""

import time
import uuid
from collections.abc import Generator
from typing import Any

from dapr.ext import workflow as sdk

CONTINUE_AFTER = 25


async def _noop(_ctx: Any, value: Any) -> Any:
    return value


def _chain(ctx: Any, inp: dict[str, int]) -> Generator[Any, Any, int]:
    done, steps = inp["done"], inp["steps"]
    now = min(steps - done, CONTINUE_AFTER)
    for number in range(now):
        yield ctx.call_activity("bare/noop", input={"run": "x" * 32, "n": number})
    if done + now < steps:
        ctx.continue_as_new({"done": done + now, "steps": steps})
    return steps


def _fan(ctx: Any, width: int) -> Generator[Any, Any, int]:
    """As many activities in a row around the fan-out as the graph's run has."""
    yield ctx.call_activity("bare/noop", input=0)
    yield ctx.call_activity("bare/noop", input=0)
    inputs = [{"run": "x" * 32, "n": number} for number in range(width)]
    yield sdk.when_all([ctx.call_activity("bare/noop", input=each) for each in inputs])
    yield ctx.call_activity("bare/noop", input=0)
    return width


class Bare:
    """Runs the bare workflows on a worker's own runtime and client."""

    def __init__(self, runtime: Any, client: Any, *, polls: bool) -> None:
        runtime.register_activity(_noop, name="bare/noop")
        runtime.register_workflow(_chain, name="bare-chain")
        runtime.register_workflow(_fan, name="bare-fan")
        self._client = client
        self._polls = polls

    def chain(self, steps: int) -> None:
        """``steps`` no-op activities, one after the other."""
        self._run("bare-chain", {"done": 0, "steps": steps})

    def fan(self, width: int) -> None:
        """``width`` no-op activities at once."""
        self._run("bare-fan", width)

    def many_chains(self, runs: int, steps: int) -> None:
        """``runs`` chains at once."""
        inp = {"done": 0, "steps": steps}
        ids = [self._schedule("bare-chain", inp) for _ in range(runs)]
        for instance in ids:
            self._wait(instance)

    def _run(self, name: str, inp: Any) -> None:
        self._wait(self._schedule(name, inp))

    def _schedule(self, name: str, inp: Any) -> str:
        instance = uuid.uuid4().hex
        return self._client.schedule_new_workflow(name, input=inp, instance_id=instance)

    def _wait(self, instance: str) -> None:
        # On daprd the waiting call stalls a second after a fan-out, so there the state is polled.
        pause = 0.002
        while self._polls:
            state = self._client.get_workflow_state(instance, fetch_payloads=False)
            if state.runtime_status.name not in ("PENDING", "RUNNING"):
                break
            time.sleep(pause)
            pause = min(pause * 1.2, 0.02)
        else:
            state = self._client.wait_for_workflow_completion(instance, timeout_in_seconds=300)
        assert state is not None and state.runtime_status.name == "COMPLETED", state
