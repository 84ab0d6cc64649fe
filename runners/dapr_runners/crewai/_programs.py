"""What a runner drives: a crew, a flow or an agent, built anew whenever a run is driven again."""

import asyncio
import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, cast

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai.errors import CannotRebuildError, UnsupportedCrewError

Factory = Callable[[Any], Any]


class Program:
    """Builds the target of a runner, from a factory or as copies of a ready object."""

    def __init__(self, runner: str, source: Any, *, max_iterations: int | None = None) -> None:
        self._runner = runner
        self._source = source
        self._max_iterations = max_iterations
        self.is_ready = isinstance(source, (crew.Crew, crew.BaseAgent, crew.Flow))
        if self.is_ready:
            self.require_supported(source)
            self._require_rebuildable(source)
        elif not callable(source):
            raise UnsupportedCrewError(
                runner=runner,
                reason=f"it is a {type(source).__name__}",
                remedy="Pass a Crew, a Flow, an Agent, or a function that builds one of inputs.",
            )

    @property
    def modules(self) -> list[str]:
        """Modules whose data classes the program's values may have."""
        source = self._source
        found = {getattr(source, "__module__", None) or type(source).__module__}
        # A result may have the classes that a factory can see.
        seen: dict[str, Any] = getattr(source, "__globals__", {})
        found |= {value.__module__ for value in list(seen.values()) if isinstance(value, type)}
        if self.is_ready:
            found |= {getattr(root, "__module__", "") for root in roots_of(source)}
        return [name for name in found if name]

    def build(self, inputs: Any) -> Any:
        """The target, as it was given or as its factory makes it, never run before."""
        target: Any = self._copy() if self.is_ready else self._made(inputs)
        self.require_supported(target)
        if self._max_iterations is not None and isinstance(target, crew.BaseAgent):
            target.max_iter = self._max_iterations
        return target

    def _made(self, inputs: Any) -> Any:
        source = self._source
        if isinstance(source, type):
            target = source()
        else:
            target = source(inputs) if inspect.signature(source).parameters else source()
        if not isinstance(target, (crew.Crew, crew.BaseAgent, crew.Flow)):
            raise UnsupportedCrewError(
                runner=self._runner,
                reason=f"its factory returned a {type(target).__name__}",
                remedy="Let it return a Crew, a Flow or an Agent.",
            )
        return target

    def _copy(self) -> Any:
        source = self._source
        if isinstance(source, crew.Flow):
            return type(source)()
        copied = source.copy()
        _share_as_before(source, copied)
        return copied

    def _require_rebuildable(self, source: Any) -> None:
        kind = type(source).__name__
        try:
            copied = self._copy()
        except Exception as error:
            raise CannotRebuildError(
                self._runner, kind, f"{type(error).__name__}: {error}"
            ) from error
        for before, after in _pairs(source, copied):
            lost = _difference(before, after)
            if lost is not None:
                raise CannotRebuildError(
                    self._runner, kind, f"{type(before).__name__}.{lost} is not the same in a copy"
                )

    def require_supported(self, target: Any) -> None:
        """Refuse what cannot be run exactly, before anything of it runs."""
        for reason, remedy in _unsupported(target):
            raise UnsupportedCrewError(runner=self._runner, reason=reason, remedy=remedy)


def agents_of(target: Any) -> list[Any]:
    """The agents of a crew, its manager too, or an agent itself."""
    if isinstance(target, crew.Crew):
        whole = target
        agents = [*whole.agents, *(task.agent for task in whole.tasks), whole.manager_agent]
        return [agent for agent in dict.fromkeys(agents) if agent is not None]
    return [target] if isinstance(target, crew.BaseAgent) else []


def roots_of(target: Any) -> Iterator[Any]:
    """Classes and functions whose annotations name the classes that results may have."""
    if isinstance(target, crew.Flow):
        flow = target
        yield type(flow)
        yield type(flow.state)
        return
    tasks = list(target.tasks) if isinstance(target, crew.Crew) else []
    for task in tasks:
        for name in ("output_pydantic", "output_json", "response_model"):
            if isinstance(model := getattr(task, name, None), type):
                yield model
    tools = [tool for owner in (*agents_of(target), *tasks) for tool in owner.tools or ()]
    for tool in tools:
        yield getattr(tool, "func", None) or cast(Any, type(tool))._run
        if (schema := getattr(tool, "result_schema", None)) is not None:
            yield schema


def _unsupported(target: Any) -> Iterator[tuple[str, str]]:
    if getattr(target, "stream", False):
        yield (
            "stream=True makes kickoff() return an iterator, whose chunks nobody could get again",
            "Leave stream out; events of run_async() tell what happens.",
        )
    for agent in agents_of(target):
        if isinstance(agent, crew.BaseAgentAdapter):
            yield (
                f"the agent {agent.role!r} runs in another framework ({type(agent).__name__})",
                "Use CrewAI's own Agent.",
            )
        if getattr(agent, "a2a", None) is not None:
            yield (
                f"the agent {agent.role!r} delegates to remote agents (a2a)",
                "Call the remote agent in a tool.",
            )


def run_target(target: Any, how: str, inputs: Any, task: Any) -> Any:
    """Run ``target`` as its own kickoff would."""
    if task is not None:
        made = crew.Crew(agents=[target], tasks=[task(target)])
        return asyncio.run(made.akickoff()) if how == "akickoff" else made.kickoff()
    if isinstance(target, crew.BaseAgent):
        agent = target
        return (
            asyncio.run(agent.kickoff_async(inputs)) if how == "akickoff" else agent.kickoff(inputs)
        )
    if how == "akickoff":
        return asyncio.run(target.akickoff(inputs=inputs))
    return target.kickoff(inputs=inputs)


# -- copies

_LLM_FIELDS = ("llm", "function_calling_llm", "manager_llm", "planning_llm", "chat_llm")


def _pairs(source: Any, copied: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of ``source``, each with its copy."""
    yield source, copied
    if isinstance(source, crew.Crew):
        before, after = source, copied
        yield from zip(before.agents, after.agents, strict=True)
        yield from zip(before.tasks, after.tasks, strict=True)
        if before.manager_agent is not None:
            yield before.manager_agent, after.manager_agent


def _share_as_before(source: Any, copied: Any) -> None:
    """Let parts of a copy share LLMs and tools as those of ``source`` do, each never used before.
    CrewAI's own copies share the counters of what was copied."""
    known: dict[int, Any] = {}

    def fresh(value: Any) -> Any:
        if isinstance(value, (crew.BaseLLM, crew.BaseTool)) and id(value) not in known:
            made = copy.copy(value)
            known[id(value)] = made
            if isinstance(value, crew.BaseLLM):
                crew.reset_usage(made)
            else:
                made.current_usage_count = 0
        return known.get(id(value), value)

    for before, after in _pairs(source, copied):
        for name in _LLM_FIELDS:
            # Not by getattr: some are deprecated, and would say so.
            if isinstance(llm := before.__dict__.get(name), crew.BaseLLM):
                after.__dict__[name] = fresh(llm)
        if getattr(before, "tools", None):
            after.__dict__["tools"] = [fresh(tool) for tool in before.tools]


_OWN = frozenset(
    (
        *_LLM_FIELDS,
        *("id", "agents", "tasks", "tools", "agent", "context", "manager_agent", "crew"),
        *("agent_executor", "fingerprint", "security_config", "cache_handler", "tools_handler"),
        *("knowledge", "knowledge_sources", "knowledge_storage", "memory", "guardrail"),
    )
)
"""What a copy has anew, or shares by design."""


def _difference(before: Any, after: Any) -> str | None:
    """A field that was set and that the copy has not kept."""
    if isinstance(before, crew.Flow):
        return _flow_difference(before, after)
    for name in sorted(before.model_fields_set - _OWN):
        if not _equal(before.__dict__.get(name), after.__dict__.get(name)):
            return name
    return None


def _equal(before: Any, after: Any) -> bool:
    try:
        return before is after or bool(before == after)
    except Exception:
        return False


def _flow_difference(before: Any, after: Any) -> str | None:
    def shown(flow: Any) -> dict[str, Any]:
        state: Any = flow.state
        fields: Any = getattr(state, "__dict__", state)
        return {**fields, "id": None}

    if not _equal(shown(before), shown(after)):
        return "state"
    for name in ("persistence", "input_provider", "memory", "name"):
        if type(getattr(before, name, None)) is not type(getattr(after, name, None)):
            return name
    return None
