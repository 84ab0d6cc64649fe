"""Tells who watches a step of the model or the tool that it calls."""

from collections.abc import Callable
from typing import Any, cast

from dapr_runners._current_step import attempt_of, running_step
from dapr_runners.crewai._driver import usage_of_step
from dapr_runners.crewai._private import authored_role
from dapr_runners.engine import Attempt, Call

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""What CrewAI calls some providers, and OpenTelemetry's conventions do."""


def model_call(llm: Any, agent: Any, messages: Any, call: Callable[[], Any]) -> Any:
    """The answer of ``call``, which asks ``llm``."""
    attempt = _watched()
    if attempt is None:
        return call()
    provider = getattr(llm, "provider", None)
    request = {
        "model": llm.model,
        "provider": None if provider is None else _PROVIDERS.get(provider, provider),
        "temperature": getattr(llm, "temperature", None),
        "max_tokens": getattr(llm, "max_tokens", None),
        "agent": None if agent is None else authored_role(agent),
    }
    return _told(attempt.chat(request, lambda: messages), call, _usage)


def tool_call(tool: Any, name: str, arguments: Any, call: Callable[[], Any]) -> Any:
    """What ``call``, of ``tool``, returns."""
    attempt = _watched()
    if attempt is None:
        return call()
    about = {"name": name, "description": getattr(tool, "description", None)}
    return _told(attempt.tool(about, lambda: arguments), call, dict)


def _told(watched: Call, call: Callable[[], Any], about: Callable[[], dict[str, Any]]) -> Any:
    try:
        result = call()
    except BaseException as error:
        watched.failed(error)
        raise
    watched.answered(about(), lambda: result)
    return result


def _usage() -> dict[str, Any]:
    usage = usage_of_step.get()
    if not usage:
        return {}
    return {
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
    }


def _watched() -> Attempt | None:
    return cast("Attempt | None", attempt_of(running_step.get()))
