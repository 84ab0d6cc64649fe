"""A CrewAI crew on our runner: an agent that prepares, charges and finalizes with three tools.
Started again, it makes the same call."""

import json
from typing import Any

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool

from chaos.setups.durable_charge import charge_of
from chaos.trial import Trial
from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.engine import Worker
from dapr_runners.state import StateStore

_TOOLS = ("prepare", "charge", "finalize")


class _Scripted(BaseLLM):
    """Calls the tools in order, then answers."""

    def __init__(self) -> None:
        super().__init__(model="scripted/orders")

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        count = sum(message["role"] == "tool" for message in messages)
        if count == len(_TOOLS):
            return "finalized"
        function = {"name": _TOOLS[count], "arguments": json.dumps({"order": "order-1"})}
        return [{"id": f"call-{count}", "type": "function", "function": function}]


def run(trial: Trial) -> None:
    """The program."""
    pay = charge_of(trial)

    @tool("prepare")
    def prepare(order: str) -> str:
        """Look an order up."""
        return f"{order} can be charged"

    @tool("charge")
    def charge(order: str) -> str:
        """Take the money for an order."""
        return pay()

    @tool("finalize")
    def finalize(order: str) -> str:
        """Ship an order that is paid."""
        trial.reach("recorded")  # it begins when the charge is recorded
        return f"{order} is on its way"

    def crew(inputs: Any) -> Crew:
        clerk = Agent(
            role="Clerk",
            goal="Sell",
            backstory="You sell.",
            tools=[prepare, charge, finalize],
            llm=_Scripted(),
        )
        task = Task(description="Sell order-1", expected_output="What was done", agent=clerk)
        return Crew(agents=[clerk], tasks=[task])

    runner = DaprWorkflowCrewRunner(
        crew,
        name="orders",
        store=StateStore(address=trial.sidecar),
        worker=Worker(trial.sidecar),
    )
    with runner:
        result = runner.kickoff({}, session_id=trial.run)
    assert result.raw == "finalized"
