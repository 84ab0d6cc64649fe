"""The private symbols of CrewAI this package touches, in one place, checked at import.

What is patched is named in :data:`PATCHED`; every patch does nothing outside of a driven run.
"""

# CrewAI's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportMissingImports=false

import importlib
import sys
from collections import Counter
from functools import partial
from importlib.metadata import version
from threading import Lock
from types import SimpleNamespace
from typing import Any, cast

from dapr_runners.crewai.errors import UnsupportedCrewAIError
from dapr_runners.state import Extension

_VERSION = version("crewai")


def _symbol(*paths: str) -> Any:
    """The module, or the attribute of one (``module:Outer.inner``). The first of ``paths`` that is
    there: other versions have it elsewhere."""
    for path in paths:
        module, _, names = path.partition(":")
        try:
            found: Any = importlib.import_module(module)
            for name in filter(None, names.split(".")):
                found = getattr(found, name)
        except (ImportError, AttributeError) as error:
            cause = error
        else:
            return found
    raise UnsupportedCrewAIError(version=_VERSION, symbol=paths[0]) from cause  # pyright: ignore


def _locked(kind: Any, value: Any) -> Any:
    return kind(value, Lock())


BaseLLM = _symbol("crewai.llms.base_llm:BaseLLM")
UsageMetrics = _symbol("crewai.types.usage_metrics:UsageMetrics")
BaseTool = _symbol("crewai.tools.base_tool:BaseTool")
Tool = _symbol("crewai.tools.base_tool:Tool")
Task = _symbol("crewai.task:Task")
Crew = _symbol("crewai.crew:Crew")
Agent = _symbol("crewai.agent.core:Agent")
BaseAgent = _symbol("crewai.agents.agent_builder.base_agent:BaseAgent")
BaseAgentAdapter = _symbol("crewai.agents.agent_adapters.base_agent_adapter:BaseAgentAdapter")
AgentExecutor = _symbol(
    "crewai.agents.agent_executor:AgentExecutor",
    "crewai.experimental.agent_executor:AgentExecutor",  # before 1.15.18
)
StepExecutor = _symbol("crewai.agents.step_executor:StepExecutor")
Flow = _symbol("crewai.flow.runtime:Flow")
EventsBus = _symbol("crewai.events.event_bus:CrewAIEventsBus")
LLMStreamChunkEvent = _symbol("crewai.events.types.llm_events:LLMStreamChunkEvent")
TaskStartedEvent = _symbol("crewai.events.types.task_events:TaskStartedEvent")
event_listener = _symbol("crewai.events.event_listener:event_listener")
CacheHandler = _symbol("crewai.agents.cache.cache_handler:CacheHandler")
RPMController = _symbol("crewai.utilities.rpm_controller:RPMController")
Memory = _symbol("crewai.memory.unified_memory:Memory")
Knowledge = _symbol("crewai.knowledge.knowledge:Knowledge")
MCPClient = _symbol("crewai.mcp.client:MCPClient")
SyncHumanInputProvider = _symbol("crewai.core.providers.human_input:SyncHumanInputProvider")
human_input = _symbol("crewai.core.providers.human_input")
flow_runtime = _symbol("crewai.flow.runtime")
PersistenceDecorator = _symbol("crewai.flow.persistence.decorators:PersistenceDecorator")
flow_providers = _symbol("crewai.flow.async_feedback.providers")
tool_hooks = _symbol("crewai.hooks.tool_hooks")
llm_hooks = _symbol("crewai.hooks.llm_hooks")
Prompts = _symbol("crewai.utilities.prompts:Prompts")
sanitize_tool_name = _symbol("crewai.utilities.string_utils:sanitize_tool_name")
_LANCEDB_STORAGE = "crewai.memory.storage.lancedb_storage"
_passthrough = _symbol("crewai.agent.core:_passthrough_exceptions")

_BaseAgentTool = "crewai.tools.agent_tools.base_agent_tools:BaseAgentTool"
TRANSPARENT_TOOLS = (
    _symbol(_BaseAgentTool),
    _symbol("crewai.tools.agent_tools.read_file_tool:ReadFileTool"),
    _symbol("crewai.skills.tool:LoadSkillTool", _BaseAgentTool),  # not there in 1.14
    _symbol(  # not there before 1.15.18
        "crewai.tools.agent_tools.deferred_tool_result_reader:DeferredToolResultReader",
        _BaseAgentTool,
    ),
)
"""Tools whose body works inside the run: it asks other agents, whose calls are steps of their own,
or reads what the run has in memory."""

_PROXIES: Any = {
    name: kind
    for name, kind in vars(flow_runtime).items()
    if name in ("LockedListProxy", "LockedDictProxy")
}
EXTENSIONS: tuple[Extension[Any], ...] = tuple(
    Extension(kind, f"crewai.{name}", kind.__base__, partial(_locked, kind))
    for name, kind in _PROXIES.items()
)
"""How CrewAI's own classes are stored: 1.14 hands out lists and dicts of a flow's state with a lock
of this process."""

_DATE_IN_TASK = "_inject_date_to_task"
PUTS_DATE_IN_PROMPT = not hasattr(Agent, _DATE_IN_TASK)
"""Whether the date that an agent is told is part of its prompt. 1.14 adds it to the task."""

PATCHED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (BaseLLM, ("__getattribute__", "_track_token_usage_internal")),
    (BaseTool, ("__getattribute__", "__setattr__")),
    (Task, ("execute_async", "_execute_task_async", "aexecute_sync", "_execute_core")),
    (Task, ("_aexecute_core",)),
    (
        Crew,
        ("kickoff", "akickoff", "kickoff_async", "_process_async_tasks", "_aprocess_async_tasks"),
    ),
    (AgentExecutor, ("_should_parallelize_native_tool_calls", "_execute_single_native_tool_call")),
    (AgentExecutor, ("_invoke_step_callback",)),
    (Agent, ("kickoff_async", "_execute_with_timeout", "_aexecute_with_timeout")),
    (StepExecutor, ("execute",)),
    (
        Flow,
        ("flow_definition", "kickoff_async", "_execute_start_method", "_execute_single_listener"),
    ),
    (Flow, ("_execute_listeners", "_resolve_input_provider", "_execute_method")),
    (PersistenceDecorator, ("persist_state",)),
    (Prompts, ("_build_date_block",)) if PUTS_DATE_IN_PROMPT else (Agent, (_DATE_IN_TASK,)),
    (EventsBus, ("emit", "_prepare_event")),
    (CacheHandler, ("read",)),
    (RPMController, ("check_or_wait", "_reset_request_count")),
    (event_listener, ("execution_spans",)),
    (Memory, ("recall", "extract_memories", "remember", "remember_many", "drain_writes")),
    (Knowledge, ("query", "aquery", "add_sources", "aadd_sources")),
    (MCPClient, ("connect", "list_tools", "disconnect")),
    (SyncHumanInputProvider, ("_prompt_input", "_prompt_input_async")),
)

for _owner, _names in PATCHED:
    for _name in _names:
        if not hasattr(_owner, _name):
            raise UnsupportedCrewAIError(version=_VERSION, symbol=f"{_owner}.{_name}")


def passes_through(error: BaseException) -> bool:
    """Whether CrewAI lets ``error`` through where it would retry others."""
    return isinstance(error, _passthrough)


def authored_role(agent: Any) -> str:
    """The role of ``agent`` as its author wrote it: CrewAI fills in what a call is given."""
    return getattr(agent, "_original_role", None) or agent.role


def is_internal_flow(flow: Any) -> bool:
    """Whether ``flow`` is a part of CrewAI's machinery, as the executor of an agent is."""
    cls = cast(Any, type(flow))
    return issubclass(cls, AgentExecutor) or bool(getattr(cls, "is_crewai_internal", False))


def add_usage(llm: Any, usage: dict[str, int]) -> None:
    """Count tokens that a recorded call used."""
    for name, count in usage.items():
        llm._token_usage[name] = llm._token_usage.get(name, 0) + count


def usage_in(track: Any, usage_data: dict[str, Any]) -> dict[str, int]:
    """What a provider says that a call used, by CrewAI's names. ``track`` is CrewAI's own method
    that counts it, which touches nothing else of an LLM."""
    counted: Counter[str] = Counter()
    track(SimpleNamespace(_token_usage=counted), usage_data)
    return dict(counted)


def reset_usage(llm: Any) -> None:
    """Let ``llm`` have used nothing."""
    usage: Any = llm._token_usage
    llm._token_usage = dict.fromkeys(usage, 0)


def state_fields(flow: Any) -> dict[str, Any]:
    """The fields of a flow's state, by reference."""
    state: Any = flow._state
    return state if isinstance(state, dict) else state.__dict__


def own_attributes(flow: Any) -> dict[str, Any]:
    """What the user's methods have set on a flow itself."""
    fields = type(flow).model_fields
    return {
        name: value
        for name, value in vars(flow).items()
        if name not in fields and not name.startswith("_")
    }


def stamp_state_id(flow: Any, value: str) -> None:
    """Let the state of ``flow`` have the id ``value``."""
    state_fields(flow)["id"] = value


def count_usage(flow: Any, usage: dict[str, int]) -> None:
    """Count tokens that a recorded call used, in a flow's own metrics, which 1.14 has none of."""
    metrics = getattr(flow, "_aggregated_usage_metrics", None)
    if metrics is not None:
        metrics.add_usage_metrics(UsageMetrics(**usage))


def see_latest(memory: Any) -> None:
    """Let ``memory`` see what other processes have stored: LanceDB's handle is a snapshot."""
    storage: Any = memory._storage
    # Not imported here: who has no memory needs no LanceDB, whose threads no fork outlives.
    if _LANCEDB_STORAGE not in sys.modules or not isinstance(
        storage, _symbol(f"{_LANCEDB_STORAGE}:LanceDBStorage")
    ):
        return
    if storage._table is not None:
        storage._table.checkout_latest()
    elif storage._table_name in storage._db.list_tables().tables:
        storage._table = storage._db.open_table(storage._table_name)
        storage._vector_dim = storage._infer_dim_from_table(storage._table)


def forget_task(task: Any) -> None:
    """Let CrewAI's own listener forget a task that has started and will not end."""
    event_listener.execution_spans.pop(task, None)
