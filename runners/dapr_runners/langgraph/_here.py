"""The work of a run in this process: in the context of its caller, and cancelled with it.

Where the caller of a run is in this process too, its context variables reach the nodes, as they do
in LangGraph. Asynchronous nodes are cancelled, as LangGraph does it, when their superstep goes on
without them (a sibling failed, the step timed out) and when their run is cancelled. In another
process, and in a thread, they run to their end, and what they give is ignored.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from dapr_runners.engine import Produced, Work, run_in_thread

_PATIENCE = 5.0
"""Seconds to wait for a cancelled node to come back."""

Start = Callable[[], Coroutine[Any, Any, Produced]]


class Here:
    """Runs the items of one graph in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[str, dict[str, asyncio.Task[Produced]]] = {}

    async def run(
        self, work: Work, start: Start, context: contextvars.Context | None, *, is_async: bool
    ) -> Produced:
        """Do the work of ``start``, in a copy of ``context``. When it is cancelled here, nothing
        comes of it."""
        if not is_async:
            if context is None:
                return await start()
            return context.copy().run(run_in_thread, start())
        copied = None if context is None else context.copy()
        task = asyncio.get_running_loop().create_task(start(), context=copied)
        self._add(work, task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            return Produced({"k": "none"})
        finally:
            self._remove(work, task)

    async def cancel_steps(self, run: str, lane: str, n: int) -> None:
        """Cancel what still runs of plan ``n`` of ``lane``. On the event loop that runs it."""
        prefix = f"{lane}{n}:"
        tasks = [task for key, task in self._of(run) if key.startswith(prefix)]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)

    def cancel(self, run: str) -> None:
        """Cancel all there is of ``run``. From any thread."""
        for _, task in self._of(run):
            loop = task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(task.cancel)

    async def ended(self, run: str) -> None:
        """Wait until what was cancelled of ``run`` has ended. On the event loop that runs it."""
        if tasks := [task for _, task in self._of(run) if task.cancelling()]:
            await asyncio.wait(tasks, timeout=_PATIENCE)

    def _of(self, run: str) -> list[tuple[str, asyncio.Task[Produced]]]:
        with self._lock:
            return list(self._tasks.get(run, {}).items())

    def _add(self, work: Work, task: asyncio.Task[Produced]) -> None:
        with self._lock:
            self._tasks.setdefault(work.run, {})[work.key] = task

    def _remove(self, work: Work, task: asyncio.Task[Produced]) -> None:
        with self._lock:
            tasks = self._tasks.get(work.run, {})
            if tasks.get(work.key) is task:
                del tasks[work.key]
            if not tasks:
                self._tasks.pop(work.run, None)
