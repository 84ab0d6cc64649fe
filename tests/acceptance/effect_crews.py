"""Crews and flows that charge somebody, as a tool or in a method."""

from collections.abc import Callable
from typing import Any

from crewai import Agent, Crew, Flow, Task
from crewai.flow.flow import listen, start
from crewai.hooks import register_before_tool_call_hook
from crewai.tools import BaseTool, tool
from crews import ScriptedLLM, Search, final, searching, use
from effect_graphs import Payments
from harness.effects import Outside

from dapr_runners.effects import effect


def _script(said: str) -> str:
    return final("paid") if "receipt for" in said else use("charge", order="order 7")


def _crew(outside: Outside, charge: Any) -> Crew:
    llm = ScriptedLLM(outside, "cashier", _script)
    agent = Agent(role="cashier", goal="g", backstory="b", llm=llm, tools=[charge])
    return Crew(agents=[agent], tasks=[Task(description="d", expected_output="e", agent=agent)])


def _function(outside: Outside, **options: Any) -> Callable[[Any], Crew]:
    payments = Payments(outside)

    @tool("charge")
    @effect(**options)
    def charge(order: str) -> str:
        """Charge an order."""
        outside.report("node")
        return payments.charge(order)

    return lambda inputs: _crew(outside, charge)


def reconciled(outside: Outside) -> Callable[[Any], Crew]:
    """A tool made of a function, and the outside tells what has happened."""
    return _function(outside, reconcile=Payments(outside).find)


def plain(outside: Outside) -> Callable[[Any], Crew]:
    """A tool made of a function, and nothing tells what has happened."""
    return _function(outside)


def method(outside: Outside) -> Callable[[Any], Crew]:
    """A tool that is a class, whose method is the effect."""
    payments = Payments(outside)

    class Charge(BaseTool):
        name: str = "charge"
        description: str = "Charge an order."

        @effect(reconcile=payments.find)
        def _run(self, order: str) -> str:
            return payments.charge(order)

    return lambda inputs: _crew(outside, Charge())


def flow(outside: Outside) -> Callable[[Any], Any]:
    """The method of a flow charges, and one after it asks a model."""
    payments = Payments(outside)

    @effect(reconcile=payments.find)
    def charge(order: str) -> str:
        return payments.charge(order)

    class Checkout(Flow[dict[str, Any]]):
        @start()
        def pay(self) -> str:
            outside.report("method")
            receipt = charge("order 7")
            outside.report("recorded")
            return receipt

        @listen(pay)
        def tell(self, receipt: str) -> str:
            llm = ScriptedLLM(outside, "clerk", lambda said: final(f"told of {receipt}"))
            return Agent(role="clerk", goal="g", backstory="b", llm=llm).kickoff("x").raw

    return lambda inputs: Checkout()


def guarded(outside: Outside) -> Callable[[Any], Crew]:
    """A hook before a tool, a guardrail and a callback before the kickoff write to an audit log."""

    @effect
    def audit(what: str) -> None:
        outside.report(f"audit {what}")

    def hook(context: Any) -> None:
        outside.report("hook runs")
        audit("hook")

    def guardrail(output: Any) -> tuple[bool, Any]:
        outside.report("guardrail runs")
        audit("guardrail")
        return True, output.raw

    def before(inputs: Any) -> Any:
        audit("kickoff")
        return inputs

    register_before_tool_call_hook(hook)

    def build(inputs: Any) -> Crew:
        scripts = {"researcher": searching("a", 1, "notes"), "writer": lambda said: final("done")}
        tasks = [
            Task(
                description="d",
                expected_output="e",
                guardrail=guardrail if role == "researcher" else None,
                agent=Agent(
                    role=role,
                    goal="g",
                    backstory="b",
                    llm=ScriptedLLM(outside, role, script),
                    tools=[Search(outside)],
                ),
            )
            for role, script in scripts.items()
        ]
        agents = [task.agent for task in tasks]
        return Crew(agents=agents, tasks=tasks, before_kickoff_callbacks=[before])

    return build
