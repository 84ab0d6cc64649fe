"""Gives a CrewAI that is older than the runner's the names the runner looks for.

The runner supports the versions that pyproject.toml says; public checkouts of CrewAI's tests may be
somewhat older, and the tests must come with the version they test.
"""

import importlib.util
import sys
from types import ModuleType


def _add(name: str, module: ModuleType) -> None:
    if importlib.util.find_spec(name) is None:
        sys.modules[name] = module


if importlib.util.find_spec("crewai.agents.agent_executor") is None:
    from crewai.experimental import agent_executor  # where it was before it became the only one

    _add("crewai.agents.agent_executor", agent_executor)

_reader = ModuleType("crewai.tools.agent_tools.deferred_tool_result_reader")
_reader.DeferredToolResultReader = type("DeferredToolResultReader", (), {})  # no such tool yet
_add(_reader.__name__, _reader)
