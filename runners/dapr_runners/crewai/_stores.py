"""Memory, knowledge and MCP discovery as steps: one each, with the embeddings, LLM calls and reads
and writes inside."""

import inspect
from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._asks import Ask
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._proxies import finished
from dapr_runners.crewai._strands import current_place, inside_step


def install() -> None:
    for name in ("recall", "extract_memories", "remember"):
        replace(crew.Memory, name, lambda f, n=name: _step(_latest(f), "memory", n))
    replace(
        crew.Memory,
        "remember_many",
        lambda f: _step(_latest(_drained(f)), "memory", "remember_many"),
    )
    for name in ("query", "aquery", "add_sources", "aadd_sources"):
        replace(crew.Knowledge, name, lambda f, n=name: _step(f, "knowledge", n))
    replace(crew.MCPClient, "connect", _connect)
    replace(crew.MCPClient, "list_tools", _list_tools)


def _ask(kind: str, name: str, about: list[Any], execute: Any) -> Ask:
    return Ask(kind=kind, name=kind, head=name, messages=about, execute=execute, asked={kind: name})


def _step(original: Any, kind: str, name: str) -> Any:
    if inspect.iscoroutinefunction(original):

        async def call_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            place = current_place()
            if place is None:
                return await original(self, *args, **kwargs)
            return await place.driver.astep(
                place,
                _ask(kind, name, [args, kwargs], lambda: finished(original(self, *args, **kwargs))),
            )

        return call_async

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return original(self, *args, **kwargs)
        return place.driver.step(
            place, _ask(kind, name, [args, kwargs], lambda: original(self, *args, **kwargs))
        )

    return call


def _latest(original: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if inside_step.get():
            crew.see_latest(self)
        return original(self, *args, **kwargs)

    return call


def _drained(original: Any) -> Any:
    """CrewAI saves in the background; a step is over when it is saved."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if inside_step.get():
            self.drain_writes()
        return result

    return call


def _connect(original: Any) -> Any:

    async def call(self: Any) -> Any:
        # Inside the step that lists the tools: a recorded list needs no connection.
        return self if current_place() is not None else await original(self)

    return call


def _list_tools(original: Any) -> Any:
    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return await original(self, *args, **kwargs)

        async def discover() -> Any:
            await self.connect()
            try:
                return await original(self, *args, **kwargs)
            finally:
                await self.disconnect()

        server = str(getattr(self.transport, "server_identifier", type(self.transport).__name__))
        return await place.driver.astep(
            place, _ask("mcp", "list_tools", [server], lambda: finished(discover()))
        )

    return call
