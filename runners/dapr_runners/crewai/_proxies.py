"""LLM calls and tool calls as steps.

The methods are wrapped where they are looked up, outermost, so that no class of the user's is
changed, and what a subclass calls of its parent is part of the same step.
"""

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, cast

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._asks import Ask
from dapr_runners.crewai._calls import model_call, tool_call
from dapr_runners.crewai._driver import usage_of_step
from dapr_runners.crewai._outcomes import Outcome
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._strands import Place, current_place
from dapr_runners.crewai._uses import COUNT, uses_seen

_LLM_PARAMETERS = (
    "messages",
    "tools",
    "callbacks",
    "available_functions",
    "from_task",
    "from_agent",
    "response_model",
)
_LLM_METHODS = frozenset(("call", "acall"))
_TOOL_METHODS = frozenset(("_run", "_arun"))
_TOOL_NAMES = _TOOL_METHODS | {"func", COUNT}


def install() -> None:
    replace(crew.BaseLLM, "__getattribute__", _llm_lookup)
    replace(crew.BaseLLM, "_track_token_usage_internal", _tracking)
    replace(crew.BaseTool, "__getattribute__", _tool_lookup)


def _llm_lookup(original: Any) -> Any:
    def lookup(self: Any, name: str) -> Any:
        found = original(self, name)
        if name in _LLM_METHODS and current_place() is not None:
            return _proxy(found, lambda args, kwargs: _llm_ask(self, found, args, kwargs))
        return found

    return lookup


def _tool_lookup(original: Any) -> Any:
    def lookup(self: Any, name: str) -> Any:
        found = original(self, name)
        if name not in _TOOL_NAMES:
            return found
        if name == COUNT:
            return uses_seen(self, found)
        if name == "func":
            is_step = isinstance(self, crew.Tool)
        else:
            is_step = name in _TOOL_METHODS and not isinstance(
                self, (crew.Tool, *crew.TRANSPARENT_TOOLS)
            )
        if is_step and current_place() is not None:
            return _proxy(found, lambda args, kwargs: _tool_ask(self, found, args, kwargs))
        return found

    return lookup


def _proxy(method: Any, ask: Callable[[Any, Any], Ask]) -> Any:
    """``method``, as a step wherever a driven run calls it."""
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            place = current_place()
            if place is None:
                return await method(*args, **kwargs)
            return await place.driver.astep(place, ask(args, kwargs))

        return call_async

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return method(*args, **kwargs)
        return place.driver.step(place, ask(args, kwargs))

    return call


def finished(result: Any) -> Any:
    """``result``, run to its end if it is a coroutine."""
    if inspect.iscoroutine(result):
        return asyncio.run(cast(Coroutine[Any, Any, Any], result))
    return result


def _llm_ask(llm: Any, method: Any, args: Any, kwargs: Any) -> Ask:
    given = {**dict(zip(_LLM_PARAMETERS, args, strict=False)), **kwargs}
    messages = given.get("messages")
    tools: list[Any] = given.get("tools") or []
    model = given.get("response_model")
    agent = given.get("from_agent")
    head = {
        "model": llm.model,
        "tools": [_tool_name(tool) for tool in tools],
        "response_model": None if model is None else model.__name__,
    }

    def deliver(outcome: Outcome) -> None:
        if outcome.usage:
            crew.add_usage(llm, outcome.usage)
            for count in usage_readers(current_place()):
                count(outcome.usage)

    return Ask(
        kind="llm",
        name="llm",
        head=head,
        messages=cast(list[Any], messages) if isinstance(messages, list) else [messages],
        execute=lambda: model_call(llm, agent, messages, lambda: finished(method(*args, **kwargs))),
        asked={"model": llm.model, "agent": getattr(agent, "role", None)},
        hints=() if model is None else (model,),
        on_delivery=deliver,
    )


def usage_readers(place: Place | None) -> list[Callable[[dict[str, int]], None]]:
    """Who counts the tokens that the code at ``place`` uses, beside the LLM itself."""
    return [] if place is None else place.driver.local.get("usage readers", [])


def _tool_name(tool: Any) -> Any:
    if isinstance(tool, dict):
        plain = cast(dict[str, Any], tool)
        return plain.get("function", plain).get("name")
    return getattr(tool, "name", None)


def _tool_ask(tool: Any, method: Any, args: Any, kwargs: Any) -> Ask:
    name: str = crew.sanitize_tool_name(tool.name)
    arguments = {"args": list(args), **kwargs} if args else kwargs
    hints: list[Any] = [getattr(method, "__func__", method)]
    if (schema := getattr(tool, "result_schema", None)) is not None:
        hints.append(schema)
    return Ask(
        kind="tool",
        name=name,
        head=name,
        messages=[arguments],
        execute=lambda: tool_call(tool, name, arguments, lambda: finished(method(*args, **kwargs))),
        asked={"tool": name, "arguments": arguments},
        hints=tuple(hints),
    )


def _tracking(original: Any) -> Any:
    def track(self: Any, usage_data: dict[str, Any]) -> None:
        used = usage_of_step.get()
        if used is not None:
            used.update(crew.usage_in(original, usage_data))
        original(self, usage_data)

    return track
