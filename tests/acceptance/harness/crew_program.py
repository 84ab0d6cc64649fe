"""A worker, or a caller, on a CrewAI runner."""

import asyncio
import importlib
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing
from typing import Any

import crewai

from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.engine import Worker, record_key
from harness.effects import Outside
from harness.hooks import Points, StoreWithPoints


class Program:
    """What ``settings`` say: ``graph`` is ``module:function``, called with the outside, and gives a
    factory; ``role`` is ``worker`` (which may call, too) or ``caller``; ``options`` are the
    runner's."""

    points_class = Points

    def __init__(self, settings: dict[str, Any]) -> None:
        module, _, name = settings["graph"].partition(":")
        outside = Outside(settings["effects"], settings["case"])
        self._points = points = self.points_class(outside) if settings["points"] else None
        store = StoreWithPoints(address=settings["address"])
        store.points = points
        self.runner = DaprWorkflowCrewRunner(
            getattr(importlib.import_module(module), name)(outside),
            name=settings["name"],
            store=store,
            worker=Worker(settings["address"]),
            **settings["options"],
        )
        if points is not None:
            points.wrap(self.runner)
        self._threads = ThreadPoolExecutor(4)
        self._begun: dict[str, Future[Any]] = {}
        if settings["role"] == "worker":
            self.runner.start()
        else:
            self.runner.connect()

    def call(self, session: str, inputs: Any = None) -> Any:
        """``kickoff``: what the result says."""
        return _told(self.runner.kickoff(inputs, session_id=session))

    def crewai_version(self) -> str:
        """The one this process has imported."""
        return crewai.__version__

    def resume(self, session: str) -> Any:
        """``resume``: what the result says."""
        return _told(self.runner.resume(session))

    def begin(self, session: str, inputs: Any = None) -> None:
        """:meth:`call`, in the background."""
        self._begun[session] = self._threads.submit(self.call, session, inputs)

    def result(self, session: str, seconds: float = 60) -> Any:
        """What :meth:`begin` led to."""
        return self._begun[session].result(seconds)

    def first_chunk(self, session: str) -> str:
        """What a model says first, while it speaks."""

        async def listen() -> str:
            async with aclosing(self.runner.run_async(session_id=session)) as events:
                async for event in events:
                    if event["type"] == "llm_chunk":
                        return event["chunk"]
            raise AssertionError("nothing was said")

        return asyncio.run(listen())

    def pending(self, session: str) -> list[str]:
        """Keys of the open questions."""
        return [question.key for question in self.runner.pending(session)]

    def answer(self, session: str, key: str, value: str) -> None:
        """Answer a question. Its points are ``answer stored`` and ``answer recorded``."""
        if self._points is not None:
            run = self.runner._resolve(None, session)
            self._points.name_key(record_key(run, key), "answer")
        self.runner.answer(session, key, value)

    def follow(self, session: str) -> list[str]:
        """Types of the events of ``run_async``, to the end of the run."""

        async def listen() -> list[str]:
            return [event["type"] async for event in self.runner.run_async(session_id=session)]

        return asyncio.run(listen())

    def custom_status(self, run: str) -> str | None:
        """What the workflow says of itself."""
        found = self.runner.get_workflow_status(run)
        return None if found is None else found["custom_status"]

    def status(self, run: str) -> str | None:
        """The workflow's status: who asks for it does not attach to the run."""
        found = self.runner.get_workflow_status(run)
        return None if found is None else found["status"]


def _told(result: Any) -> Any:
    if not hasattr(result, "tasks_output"):
        return result
    return {
        "raw": result.raw,
        "tasks": [task.raw for task in result.tasks_output],
        "tokens": result.token_usage.model_dump(),
    }
