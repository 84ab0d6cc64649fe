"""Where CrewAI's control forks and joins: each thread of control becomes a strand."""

import asyncio
import contextvars
from concurrent.futures import Future
from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._asks import Ending, Unwound
from dapr_runners.crewai._budgets import Overspent
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._strands import Calls, Place, Strand, current_place, here

_POOL = 8
"""Threads of the pool in which CrewAI runs tool calls at once."""


def install() -> None:
    replace(crew.Task, "execute_async", _execute_async)
    replace(crew.Task, "_execute_task_async", _execute_task_async)
    replace(crew.Task, "aexecute_sync", _aexecute_sync)
    replace(crew.Task, "_execute_core", lambda f: _scoped(f, _task_label))
    replace(crew.Task, "_aexecute_core", lambda f: _scoped_async(f, _task_label))
    replace(crew.Crew, "kickoff", lambda f: _scoped(f, _crew_label))
    replace(crew.Crew, "akickoff", lambda f: _awaited(f, "crew"))
    replace(crew.Crew, "kickoff_async", lambda f: _awaited(f, "crew"))
    replace(crew.Agent, "kickoff_async", lambda f: _awaited(f, "agent"))
    replace(crew.Crew, "_process_async_tasks", _joined)
    replace(crew.Crew, "_aprocess_async_tasks", joined_async)
    replace(crew.AgentExecutor, "_should_parallelize_native_tool_calls", _should_parallelize)
    replace(crew.AgentExecutor, "_execute_single_native_tool_call", _execute_single)
    replace(crew.StepExecutor, "execute", _execute_todo)


def _crew_label(_crew: Any) -> str:
    return "crew"


def _task_label(task: Any) -> str:
    tasks: list[Any] = getattr(getattr(task.agent, "crew", None), "tasks", None) or []
    return next((f"task{n}" for n, known in enumerate(tasks) if known is task), "task")


def _scoped(original: Any, label: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return original(self, *args, **kwargs)
        token = here.set(place.inner(label(self)))
        try:
            return original(self, *args, **kwargs)
        finally:
            here.reset(token)

    return call


def _scoped_async(original: Any, label: Any) -> Any:
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return await original(self, *args, **kwargs)
        token = here.set(place.inner(label(self)))
        try:
            return await original(self, *args, **kwargs)
        finally:
            here.reset(token)

    return call


async def on_strand(place: Place, coroutine: Any, waiting: Strand | None = None) -> Any:
    """Run ``coroutine`` on the strand of ``place``, which ends with it. ``waiting`` waits for it no
    longer then."""
    token = here.set(place)
    try:
        return await coroutine
    except (Unwound, Ending, Overspent):
        # Nobody may be left to ask the task for it.
        if (task := asyncio.current_task()) is not None:
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise
    finally:
        here.reset(token)
        if waiting is None:
            place.driver.close(place.strand)
        else:
            place.driver.wait_for_children(waiting, -1, closing=place.strand)


def _awaited(original: Any, label: str) -> Any:
    """``original`` on a strand of its own, which the one that calls it waits for: several may be
    awaited together."""

    # No coroutine function: the strand must be there before its task runs for the first time.
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return original(self, *args, **kwargs)
        forked = place.fork(label)
        place.driver.wait_for_children(place.strand, +1)
        return on_strand(forked, original(self, *args, **kwargs), waiting=place.strand)

    return call


def _execute_async(original: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return original(self, *args, **kwargs)
        forked = place.fork("async")
        context = contextvars.copy_context()
        context.run(here.set, forked)
        future: Future[Any] = context.run(original, self, *args, **kwargs)
        future.add_done_callback(lambda _: forked.driver.close(forked.strand))
        return future

    return call


def _execute_task_async(original: Any) -> Any:
    """CrewAI resolves the future of a task for an Exception only."""

    def call(self: Any, agent: Any, context: Any, tools: Any, future: Any) -> None:
        try:
            original(self, agent, context, tools, future)
        except BaseException as error:
            if current_place() is None:
                raise
            if not future.done():
                future.set_exception(error)

    return call


def _aexecute_sync(original: Any) -> Any:
    # No coroutine function: the strand must be there before its task runs for the first time.
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None or not self.async_execution:
            return original(self, *args, **kwargs)
        return on_strand(place.fork("async"), original(self, *args, **kwargs))

    return call


def _joined(original: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return original(self, *args, **kwargs)
        place.driver.wait_for_children(place.strand, +1)
        try:
            return original(self, *args, **kwargs)
        finally:
            place.driver.wait_for_children(place.strand, -1)

    return call


def joined_async(original: Any) -> Any:
    """``original``, during which its strand only waits for those it opened."""

    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return await original(self, *args, **kwargs)
        place.driver.wait_for_children(place.strand, +1)
        try:
            return await original(self, *args, **kwargs)
        finally:
            place.driver.wait_for_children(place.strand, -1)

    return call


def _should_parallelize(original: Any) -> Any:
    def call(self: Any, tool_calls: list[Any]) -> bool:
        decided: bool = original(self, tool_calls)
        place = current_place()
        if decided and place is not None:
            place.strand.calls = Calls(place, tool_calls, min(_POOL, len(tool_calls)))
        return decided

    return call


def _execute_single(original: Any) -> Any:
    def call(self: Any, tool_call: Any) -> Any:
        place = current_place()
        calls = None if place is None else place.strand.calls
        forked = None if calls is None else calls.place_of(tool_call)
        if calls is None or forked is None:
            return original(self, tool_call)
        token = here.set(forked)
        try:
            return original(self, tool_call)
        finally:
            here.reset(token)
            calls.ended(forked)

    return call


def _execute_todo(original: Any) -> Any:
    def call(self: Any, todo: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return original(self, todo, *args, **kwargs)
        forked = place.fork(f"todo{todo.step_number}")
        token = here.set(forked)
        try:
            return original(self, todo, *args, **kwargs)
        finally:
            here.reset(token)
            forked.driver.close(forked.strand)

    return call
