"""What a script calls a graph with: each call's outcome is kept, to be compared."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from corpus.show import in_any_order, show, show_history, show_state

T = TypeVar("T")


class Probe:
    """Calls ``graph`` (a compiled graph, or a runner of one), blocking or on an event loop.

    Threads are named ``<case>/<thread>``, so that cases can share a saver.
    """

    def __init__(self, graph: Any, case: str, *, is_async: bool = False) -> None:
        self.graph = graph
        self.trace: list[Any] = []
        self._case = case
        self._is_async = is_async

    def config(self, thread: str = "1", configurable: Any = None, **entries: Any) -> Any:
        """The config of a call in ``thread``."""
        thread_id = f"{self._case}/{thread}"
        return {**entries, "configurable": {"thread_id": thread_id, **(configurable or {})}}

    # -- calls, whose outcomes are kept

    def invokes(self, input: Any, config: Any = None, **arguments: Any) -> Any:
        """Invoke the graph; what it returns or raises is kept. Returns what it returned."""
        call = self.graph.ainvoke if self._is_async else self.graph.invoke
        return self._keep(lambda: self._run(call(input, config or self.config(), **arguments)))

    def ainvokes(self, input: Any, config: Any = None, **arguments: Any) -> Any:
        """Invoke the graph on an event loop, whatever the probe does otherwise."""
        config = config or self.config()
        return self._keep(lambda: asyncio.run(self.graph.ainvoke(input, config, **arguments)))

    def streams(self, input: Any, mode: Any, config: Any = None, **arguments: Any) -> None:
        """Stream the graph; the chunks are kept in order."""
        self._keep(lambda: self.chunks(input, mode, config, **arguments))

    def streams_in_any_order(self, input: Any, mode: Any, **arguments: Any) -> None:
        """Stream the graph; the chunks are kept, where parallel nodes may stream in any order."""
        self.sees(in_any_order(self.chunks(input, mode, **arguments)))

    def shows_state(self, config: Any = None) -> None:
        """Keep the state of a thread."""
        self._keep(lambda: self.state(config), show_state)

    def shows_history(self, config: Any = None) -> None:
        """Keep all states of a thread."""
        self._keep(lambda: self.history(config), show_history)

    def sees(self, value: Any) -> None:
        """Keep a value."""
        self.trace.append(show(value))

    # -- calls

    def chunks(self, input: Any, mode: Any, config: Any = None, **arguments: Any) -> list[Any]:
        """What streaming the graph gives."""
        options = {"stream_mode": mode, **arguments}
        return self._all("stream", input, config or self.config(), **options)

    def state(self, config: Any = None, **arguments: Any) -> Any:
        """The state of a thread."""
        call = self.graph.aget_state if self._is_async else self.graph.get_state
        return self._run(call(config or self.config(), **arguments))

    def history(self, config: Any = None) -> list[Any]:
        """All states of a thread, the newest first."""
        return self._all("get_state_history", config or self.config())

    def updates_state(self, config: Any, values: Any, **arguments: Any) -> Any:
        """Update the state of a thread. Returns the config of the new state."""
        call = self.graph.aupdate_state if self._is_async else self.graph.update_state
        return self._run(call(config, values, **arguments))

    def interrupt_ids(self) -> dict[str, str]:
        """The ids of what is asked, by the question."""
        return {str(asked.value): asked.id for asked in self.state().interrupts}

    # -- both worlds

    def _keep(self, call: Callable[[], T], shown: Callable[[T], Any] = show) -> T | None:
        try:
            result = call()
        except Exception as error:
            self.trace.append(show(error))
            return None
        self.trace.append(shown(result))
        return result

    def _run(self, result: Any) -> Any:
        if not isinstance(result, Coroutine):
            return result

        async def awaited() -> Any:
            return await result

        return asyncio.run(awaited())

    def _all(self, method: str, *args: Any, **arguments: Any) -> list[Any]:
        if not self._is_async:
            found: Iterable[Any] = getattr(self.graph, method)(*args, **arguments)
            return list(found)
        name = {"stream": "astream", "get_state_history": "aget_state_history"}[method]

        async def collect() -> list[Any]:
            return [item async for item in getattr(self.graph, name)(*args, **arguments)]

        return asyncio.run(collect())
