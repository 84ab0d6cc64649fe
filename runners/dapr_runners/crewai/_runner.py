"""The runners for CrewAI: of an agent, of a crew, of a flow."""

from collections.abc import AsyncIterator
from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._base import CrewAIRunner
from dapr_runners.engine import MultitaskStrategy


class _InputsRunner(CrewAIRunner):
    async def run_async(
        self,
        inputs: Any = None,
        *,
        session_id: str | None = None,
        workflow_id: str | None = None,
        run_id: str | None = None,
        multitask_strategy: MultitaskStrategy | None = None,
        poll_interval: float | None = None,
        tenant_id: str | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Run to the end, yielding events (dicts with ``type``; see ``_events``). ``run_id`` (or
        ``workflow_id``) names exactly one run for ever. ``poll_interval`` is accepted and not
        needed. ``tenant_id`` makes it a call on :meth:`for_tenant`."""
        async for event in self._called_for(tenant_id)._events(
            inputs, None, session_id, workflow_id or run_id, multitask_strategy
        ):
            yield event


class DaprWorkflowCrewRunner(_InputsRunner):
    """Runs a crew, unmodified, on Dapr Workflow: every LLM call, tool call and question to a person
    is recorded, and nothing recorded is repeated when a process dies.

    ``crew_or_factory``: a function that builds the crew of its inputs (best: it is called wherever
    a run goes on), or a ready crew, of which copies are run. A flow is taken too.
    """

    _kinds = (crew.Crew, crew.Flow)

    def __init__(self, crew_or_factory: Any, *, name: str, **options: Any) -> None:
        super().__init__(crew_or_factory, name=name, **options)


class DaprWorkflowFlowRunner(_InputsRunner):
    """Runs a flow, unmodified, on Dapr Workflow. ``flow_or_factory``: the class of the flow, a
    function that builds one, or a ready flow whose class builds the same without arguments."""

    _kinds = (crew.Flow,)

    def __init__(self, flow_or_factory: Any, *, name: str, **options: Any) -> None:
        super().__init__(flow_or_factory, name=name, **options)


class DaprWorkflowAgentRunner(CrewAIRunner):
    """Runs one agent, unmodified, on Dapr Workflow. ``agent``: it, or a function that builds it;
    ``max_iterations`` is its ``max_iter``. ``kickoff`` takes what ``Agent.kickoff`` does (a text or
    messages) and gives a LiteAgentOutput; with ``task`` it gives the CrewOutput of that task."""

    _kinds = (crew.BaseAgent,)

    def __init__(
        self, agent: Any, *, name: str, max_iterations: int | None = None, **options: Any
    ) -> None:
        super().__init__(agent, name=name, max_iterations=max_iterations, **options)
        self.agent = agent

    def _about(self) -> dict[str, Any]:
        return {"agent_role": getattr(self.agent, "role", None)}

    async def run_async(
        self,
        task: Any = None,
        *,
        session_id: str | None = None,
        workflow_id: str | None = None,
        run_id: str | None = None,
        multitask_strategy: MultitaskStrategy | None = None,
        poll_interval: float | None = None,
        tenant_id: str | None = None,
    ) -> AsyncIterator[dict[str, Any]]:
        """Run ``task`` (a Task, a text or messages) to its end, yielding events (dicts with
        ``type``; see ``_events``)."""
        of_crew = task if isinstance(task, crew.Task) else None
        async for event in self._called_for(tenant_id)._events(
            None if of_crew is not None else task,
            of_crew,
            session_id,
            workflow_id or run_id,
            multitask_strategy,
        ):
            yield event
