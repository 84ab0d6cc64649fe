"""The workflows the sidecar's tests run, in the test's process or in one of its own."""

import asyncio
import time
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

from dapr.ext.workflow import (
    DaprWorkflowContext,
    RetryPolicy,
    WorkflowActivityContext,
    WorkflowRuntime,
    when_all,
)

Steps = Generator[Any, Any, Any]


def echo(_: WorkflowActivityContext, value: Any) -> Any:
    return value


async def async_echo(_: WorkflowActivityContext, value: Any) -> Any:
    await asyncio.sleep(0)
    return value


def blob(_: WorkflowActivityContext, size: int) -> str:
    return "x" * size


def boom(_: WorkflowActivityContext, message: str) -> None:
    raise RuntimeError(message)


def journal(context: WorkflowActivityContext, entry: dict[str, Any]) -> str:
    """Notes in a file that it began, waits until another file exists, notes that it ended."""
    execution = context.get_inner_context().task_execution_id
    path = Path(entry["journal"])
    with path.open("a") as lines:
        lines.write(f"begin {entry['name']} {execution}\n")
    gate = Path(entry["gate"])
    while not gate.exists():
        time.sleep(0.01)
    with path.open("a") as lines:
        lines.write(f"end {entry['name']} {execution}\n")
    return entry["name"]


def execution_id(context: WorkflowActivityContext, fail_until: int) -> str:
    """The task execution id; raises until the task id is at least ``fail_until``."""
    inner = context.get_inner_context()
    if inner.task_id < fail_until:
        raise RuntimeError("too early")
    return inner.task_execution_id


def sequence(context: DaprWorkflowContext, count: int) -> Steps:
    results: list[Any] = []
    for number in range(count):
        results.append((yield context.call_activity("echo", input=number)))
    return results


def fan_out(context: DaprWorkflowContext, count: int) -> Steps:
    return (yield when_all([context.call_activity("async_echo", input=n) for n in range(count)]))


def retried(context: DaprWorkflowContext, attempts: int) -> Steps:
    policy = RetryPolicy(
        first_retry_interval=timedelta(milliseconds=20), max_number_of_attempts=attempts
    )
    first = yield context.call_activity("execution_id", input=5, retry_policy=policy)
    second = yield context.call_activity("execution_id", input=0)
    return [first, second]


def failing_activity(context: DaprWorkflowContext, message: str) -> Steps:
    yield context.call_activity("boom", input=message)


def raising(context: DaprWorkflowContext, message: str) -> Steps:
    context.set_custom_status("about to raise")
    yield context.call_activity("echo", input=1)
    raise ValueError(message)


def sleeping(context: DaprWorkflowContext, seconds: float) -> Steps:
    yield context.create_timer(timedelta(seconds=seconds))
    return "woken"


def waiting(context: DaprWorkflowContext, name: str) -> Steps:
    context.set_custom_status("waiting")
    return (yield context.wait_for_external_event(name))


def waiting_for_many(context: DaprWorkflowContext, count: int) -> Steps:
    got: list[Any] = []
    for _ in range(count):
        got.append((yield context.wait_for_external_event("item")))
    return got


def waiting_with_timeout(context: DaprWorkflowContext, seconds: float) -> Steps:
    try:
        return (yield context.wait_for_external_event("go", timeout=timedelta(seconds=seconds)))
    except TimeoutError:
        return "timed out"


def two_waits(context: DaprWorkflowContext, seconds: float) -> Steps:
    """The first wait gets its event; the timer of the second must fire all the same."""
    first = yield context.wait_for_external_event("go", timeout=timedelta(seconds=60))
    try:
        yield context.wait_for_external_event("go", timeout=timedelta(seconds=seconds))
    except TimeoutError:
        return [first, "timed out"]
    return [first, "event"]


def generations(context: DaprWorkflowContext, state: dict[str, Any]) -> Steps:
    if state["n"] == 3:
        return state["got"]
    got = yield context.wait_for_external_event("tick")
    context.continue_as_new({"n": state["n"] + 1, "got": [*state["got"], got]}, save_events=True)
    return None


def numbered_generations(context: DaprWorkflowContext, state: dict[str, Any]) -> Steps:
    """Activities over generations: their execution ids must all differ."""
    mine = []
    for _ in range(2):
        mine.append((yield context.call_activity("execution_id", input=0)))
    seen = state["seen"] + mine
    if state["n"] == 2:
        return seen
    context.continue_as_new({"n": state["n"] + 1, "seen": seen})
    return None


def parent(context: DaprWorkflowContext, child: dict[str, Any]) -> Steps:
    return (
        yield context.call_child_workflow(
            child["workflow"], input=child.get("input"), instance_id=child.get("id")
        )
    )


def parents(context: DaprWorkflowContext, count: int) -> Steps:
    tasks = [context.call_child_workflow("sequence", input=n) for n in range(count)]
    return (yield when_all(tasks))


def journaled(context: DaprWorkflowContext, entries: list[dict[str, Any]]) -> Steps:
    results = []
    for entry in entries:
        results.append((yield context.call_activity("journal", input=entry)))
    return results


def journaled_at_once(context: DaprWorkflowContext, entries: list[dict[str, Any]]) -> Steps:
    return (yield when_all([context.call_activity("journal", input=entry) for entry in entries]))


def blobs(context: DaprWorkflowContext, sizes: list[int]) -> Steps:
    total = 0
    for size in sizes:
        total += len((yield context.call_activity("blob", input=size)))
    return total


def large_input(context: DaprWorkflowContext, size: int) -> Steps:
    yield context.call_activity("blob", input=1)
    yield context.call_activity("swallow", input="y" * size)
    return "swallowed"


def swallow(_: WorkflowActivityContext, value: str) -> int:
    return len(value)


def large_output(context: DaprWorkflowContext, size: int) -> Steps:
    yield context.call_activity("blob", input=1)
    return "z" * size


def left_behind(context: DaprWorkflowContext, _: None) -> Steps:
    """Ends while an activity and a timer it began are not over."""
    context.call_activity("echo", input=1)
    context.create_timer(timedelta(hours=1))
    return "left"
    yield


def patched(context: DaprWorkflowContext, _: None) -> Steps:
    first = "new" if context.is_patched("patch") else "old"
    got = yield context.wait_for_external_event("go")
    return [first, got]


ACTIVITIES = (echo, async_echo, blob, boom, journal, execution_id, swallow)
WORKFLOWS = (
    sequence,
    fan_out,
    retried,
    failing_activity,
    raising,
    sleeping,
    waiting,
    waiting_for_many,
    waiting_with_timeout,
    two_waits,
    generations,
    numbered_generations,
    parent,
    parents,
    journaled,
    journaled_at_once,
    blobs,
    large_input,
    large_output,
    left_behind,
    patched,
)


def _fresh(function: Any) -> Any:
    """The SDK marks what it registers, and takes nothing that is marked a second time."""
    if asyncio.iscoroutinefunction(function):

        async def activity(context: Any, value: Any) -> Any:
            return await function(context, value)

        return activity

    def registered(context: Any, value: Any) -> Any:
        return function(context, value)

    return registered


def make_runtime(host: str, port: int) -> WorkflowRuntime:
    """A worker that knows everything in this file, not started."""
    runtime = WorkflowRuntime(host=host, port=str(port), maximum_thread_pool_workers=32)
    for function in ACTIVITIES:
        runtime.register_activity(_fresh(function), name=function.__name__)
    for function in WORKFLOWS:
        runtime.register_workflow(_fresh(function), name=function.__name__)
    return runtime
