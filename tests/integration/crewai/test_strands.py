"""Several threads of control in one run: none waits for another that does not wait for it."""

import asyncio
import threading
from typing import Any

from crew_helpers import make_agent, make_crew
from crewai import Crew, Flow, Process, Task
from crewai.flow.flow import and_, listen, or_, router, start
from scripted import ScriptedLLM, Tool, final, searching, use

from dapr_runners.crewai import DaprWorkflowCrewRunner, DaprWorkflowFlowRunner

_PATIENCE = 20.0


def test_a_tool_is_called_while_other_code_computes(make: Any) -> None:
    called = threading.Event()

    def look(query: str) -> str:
        called.set()
        return f"found {query}"

    class Two(Flow[dict[str, Any]]):
        @start()
        def computing(self) -> bool:
            return called.wait(_PATIENCE)

        @start()
        def looking(self) -> str:
            return make_agent(tools=[Tool(look)]).kickoff("x").raw

        @listen(and_(computing, looking))
        def end(self) -> str:
            return "both"

    runner = make(DaprWorkflowFlowRunner, lambda inputs: Two())
    assert runner.kickoff(session_id="s") == "both"
    assert called.is_set()


def test_crews_gathered_in_a_method_are_at_work_at_once(make: Any) -> None:
    meet = threading.Barrier(2, timeout=_PATIENCE)

    def together(query: str) -> str:
        meet.wait()
        return f"found {query}"

    class Gathering(Flow[dict[str, Any]]):
        @start()
        async def both(self) -> list[str]:
            crews = [make_crew(make_agent(tools=[Tool(together)])) for _ in range(2)]
            results = await asyncio.gather(*(crew.akickoff() for crew in crews))
            return [result.raw for result in results]

    runner = make(DaprWorkflowFlowRunner, lambda inputs: Gathering())
    assert runner.kickoff(session_id="s") == ["done", "done"]


def test_asynchronous_tasks_are_at_work_at_once(make: Any) -> None:
    meet = threading.Barrier(3, timeout=_PATIENCE)

    def together(query: str) -> str:
        meet.wait()
        return f"found {query}"

    def build(inputs: Any) -> Crew:
        agents = [make_agent(tools=[Tool(together)], role=f"r{n}") for n in range(3)]
        tasks = [
            Task(description=f"d{n}", expected_output="e", agent=agent, async_execution=True)
            for n, agent in enumerate(agents)
        ]
        last = make_agent(lambda said: final("all"))
        join = Task(description="join", expected_output="e", agent=last, context=tasks)
        return Crew(agents=[*agents, last], tasks=[*tasks, join])

    runner = make(DaprWorkflowCrewRunner, build)
    result = runner.kickoff(session_id="s")
    assert [task.raw for task in result.tasks_output] == ["done", "done", "done", "all"]
    meet.reset()
    again = asyncio.run(runner.akickoff(session_id="t"))
    assert [task.raw for task in again.tasks_output] == ["done", "done", "done", "all"]


def test_a_manager_delegates(make: Any) -> None:
    def manager(said: str) -> str:
        work = {"task": "look", "context": "c", "coworker": "worker"}
        return final("managed") if "notes" in said else use("delegate_work_to_coworker", **work)

    tool = Tool()

    def build(inputs: Any) -> Crew:
        worker = make_agent(searching(answer="notes"), [tool], role="worker")
        return Crew(
            agents=[worker],
            tasks=[Task(description="d", expected_output="e", agent=worker)],
            process=Process.hierarchical,
            manager_llm=ScriptedLLM(manager),
        )

    result = make(DaprWorkflowCrewRunner, build).kickoff(session_id="s")
    assert result.raw == "managed"
    assert tool.calls == ["q0"]
    assert result == build(None).kickoff()


def test_a_flow_goes_in_circles(make: Any) -> None:
    class Circle(Flow[dict[str, Any]]):
        @start()
        def begin(self) -> str:
            self.state["n"] = 0
            return "x"

        @router(or_(begin, "again"))
        def turn(self) -> str:
            self.state["n"] += 1
            make_agent().kickoff("x")
            return "again" if self.state["n"] < 3 else "enough"

        @listen("enough")
        def end(self) -> int:
            return self.state["n"]

    assert make(DaprWorkflowFlowRunner, lambda inputs: Circle()).kickoff(session_id="s") == 3
