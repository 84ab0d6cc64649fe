"""Hooks of CrewAI are one process's: these leave all agents alone but one role's each."""

import functools
from typing import Any

import crewai
from crewai.hooks import (
    register_after_llm_call_hook,
    register_after_tool_call_hook,
    register_before_llm_call_hook,
    register_before_tool_call_hook,
)

HOOKED, APPROVED = "Hooked", "Approved"


def _is(context: Any, role: str) -> bool:
    return context.agent is not None and context.agent.role == role


def _log(context: Any, hook: str, **more: Any) -> None:
    log = context.agent.llm._log
    log.add("code", {"code": hook, **more})


@functools.cache
def hook_everything() -> None:
    """Log and change what an agent called "Hooked" asks, is answered and uses."""

    def before_llm(context: Any) -> None:
        if _is(context, HOOKED):
            _log(context, "before_llm", messages=len(context.messages))

    def after_llm(context: Any) -> str | None:
        if not _is(context, HOOKED):
            return None
        _log(context, "after_llm")
        return context.response.replace("shy", "LOUD")

    def before_tool(context: Any) -> None:
        if _is(context, HOOKED):
            _log(context, "before_tool", name=context.tool_name)
            context.tool_input["q"] = "rewritten"

    def after_tool(context: Any) -> str | None:
        if not _is(context, HOOKED):
            return None
        _log(context, "after_tool")
        return f"{context.tool_result}!"

    register_before_llm_call_hook(before_llm)
    # 1.14 makes a text of every answer once there is such a hook, of tool calls too.
    if not crewai.__version__.startswith("1.14."):
        register_after_llm_call_hook(after_llm)
    register_before_tool_call_hook(before_tool)
    register_after_tool_call_hook(after_tool)


@functools.cache
def hook_approval() -> None:
    """Ask a person before an agent called "Approved" uses a tool."""

    def before_tool(context: Any) -> bool | None:
        if not _is(context, APPROVED):
            return None
        return None if context.request_human_input("approve?") == "yes" else False

    register_before_tool_call_hook(before_tool)
