"""A worker, or a caller, on a runner of any graph."""

import asyncio
import importlib
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from dapr_runners.engine import Worker, serve
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from harness.effects import Outside
from harness.hooks import Points, StoreWithPoints


class Program:
    """What ``settings`` say: ``graph`` is ``module:factory``, called with the outside and whether
    nodes are to be async; ``role`` is ``worker`` (which may call, too) or ``caller``; ``options``
    are the runner's; ``points`` puts those of ``hooks`` in."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._is_async = settings["is_async"]
        module, _, factory = settings["graph"].partition(":")
        self._outside = outside = Outside(settings["effects"], settings["case"])
        graph = getattr(importlib.import_module(module), factory)(outside, self._is_async)
        store = StoreWithPoints(address=settings["address"])
        self.runner = DaprWorkflowGraphRunner(
            graph,
            name=settings["name"],
            store=store,
            worker=Worker(settings["address"]),
            **settings["options"],
        )
        if settings["points"]:
            store.points = Points(outside)
            store.points.wrap(self.runner)
        self._threads = ThreadPoolExecutor(4)
        self._begun: dict[str, Future[Any]] = {}
        if settings["role"] == "worker":
            self.runner.start()
        else:
            self.runner.connect()

    def serve(self, grace: float) -> None:
        """Work until a signal comes. ``serving`` is told as soon as one is listened to."""
        serve(self.runner, _Herald(self.runner.worker, self._outside), grace=grace)

    def call(self, thread: str, input: Any) -> Any:
        """``invoke`` or ``ainvoke``."""
        config: Any = {"configurable": {"thread_id": thread}}
        if self._is_async:
            return asyncio.run(self.runner.ainvoke(input, config))
        return self.runner.invoke(input, config)

    def begin(self, thread: str, input: Any) -> None:
        """:meth:`call`, in the background."""
        self._begun[thread] = self._threads.submit(self.call, thread, input)

    def result(self, thread: str, seconds: float = 60) -> Any:
        """What :meth:`begin` led to."""
        return self._begun[thread].result(seconds)

    def status(self, run: str) -> str | None:
        """The workflow's status."""
        found = self.runner.get_workflow_status(run)
        return None if found is None else found["status"]

    def custom_status(self, run: str) -> str | None:
        """What the workflow says of itself."""
        found = self.runner.get_workflow_status(run)
        return None if found is None else found["custom_status"]

    def langgraph_version(self) -> str:
        """The LangGraph it runs on."""
        return version("langgraph")

    def purge(self, run: str) -> None:
        """Delete what is recorded of a run."""
        self.runner.purge(run)

    def decide(self, what: str, *value: Any) -> None:
        """Decide the only dead letter there is."""
        letters = self.runner.dead_letters()
        (letter,) = letters.list()
        getattr(letters, what)(letter.id, *value, who="me", why="I looked")

    def letters(self) -> list[Any]:
        """The dead letters of the runner."""
        letters = self.runner.dead_letters()
        found = [letters.get(letter.id) for letter in letters.list()]
        return [replace(letter, record=None) for letter in found]

    def events(self, thread: str, input: Any) -> list[dict[str, Any]]:
        """What ``run_async`` yields, without what cannot be told to another process."""

        async def listen() -> list[dict[str, Any]]:
            found = self.runner.run_async(input, thread_id=thread)
            return [
                {k: v for k, v in event.items() if k not in ("exception", "data", "output")}
                async for event in found
            ]

        return asyncio.run(listen())

    def cancel(self, run: str) -> None:
        """Cancel a run."""
        self.runner.cancel(run)

    def history(self, thread: str) -> list[Any]:
        """Ids and values of the checkpoints of ``thread``, newest first."""
        states = self.runner.get_state_history({"configurable": {"thread_id": thread}})
        return [(state.config["configurable"], state.values) for state in states]

    def values(self, thread: str) -> Any:
        """The state that the saver holds of ``thread``."""
        return self.runner.get_state({"configurable": {"thread_id": thread}}).values


class _Herald:
    """A runner that tells that it is started, and does nothing else."""

    def __init__(self, worker: Worker, outside: Outside) -> None:
        self.worker = worker
        self._outside = outside

    def start(self) -> None:
        self._outside.report("serving")

    def shutdown(self) -> None:
        pass
