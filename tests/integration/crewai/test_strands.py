"""Several threads of control in one run: none waits for another that does not wait for it."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from crew_helpers import Background, make_agent, make_crew, questions
from crewai import Crew, Flow, Process, Task
from crewai.flow.flow import and_, listen, or_, router, start
from crewai.tools import tool
from pydantic import BaseModel, field_validator
from scripted import ScriptedLLM, Tool, final, searching, use

from dapr_runners.crewai import DaprWorkflowCrewRunner, DaprWorkflowFlowRunner

_PATIENCE = 60.0


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


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads take turns as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_flows_of_one_class_are_built_at_once(switching: None) -> None:
    """CrewAI makes the definition of a class with its first object, and reads its attributes."""
    for number in range(20):
        many: dict[str, Any] = {f"attribute_{n}": n for n in range(400)}
        kind = type(f"Wide{number}", (Flow,), {"begin": start()(lambda self: 1), **many})
        barrier, errors = threading.Barrier(4), list[Exception]()

        def build(kind: Any = kind, barrier: Any = barrier, errors: Any = errors) -> None:
            barrier.wait(_PATIENCE)
            try:
                kind()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=build) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_PATIENCE)
        assert errors == []


def test_what_an_agent_found_in_the_cache_it_finds_again(make: Any) -> None:
    """Two agents at work share a cache. The second found there what the first had put in; when the
    run is driven again, the first is late."""
    found, seen = threading.Event(), threading.Event()
    looked_up: list[str] = []
    builds: list[int] = []

    @tool("lookup")
    def lookup(q: str) -> str:
        """Look q up."""
        looked_up.append(q)
        return f"fact {q}"

    @tool("wait")
    def wait(q: str) -> str:
        """Wait until the fact is there."""
        assert found.wait(_PATIENCE)
        return "waited"

    def second(said: str) -> str:
        if "fact x" in said:
            return final("second")
        return use("lookup", q="x") if "waited" in said else use("wait", q="x")

    def first(said: str) -> str:
        if "fact x" not in said:
            return use("lookup", q="x")
        found.set()
        return final("first")

    def build(inputs: Any) -> Crew:
        builds.append(1)
        is_again = len(builds) > 1

        def keep(arguments: Any, result: Any) -> bool:
            return not is_again or seen.wait(_PATIENCE)

        lookup.cache_function = keep
        agents = [
            make_agent(first, [lookup], role="first"),
            make_agent(second, [lookup, wait], role="second"),
        ]
        tasks = [
            Task(
                description=agent.role,
                expected_output="e",
                agent=agent,
                async_execution=True,
                human_input=agent.role == "second",
                callback=lambda output: seen.set() if output.agent == "second" else None,
            )
            for agent in agents
        ]
        last = make_agent(lambda said: final("all"))
        join = Task(description="join", expected_output="e", agent=last, context=tasks)
        return Crew(agents=[*agents, last], tasks=[*tasks, join], cache=True)

    first_runner = make(DaprWorkflowCrewRunner, build, name="cached")
    Background(first_runner)
    (asked,) = questions(first_runner)
    first_runner.shutdown()
    second_runner = make(DaprWorkflowCrewRunner, build, name="cached")
    second_runner.answer("s", asked.key, "")
    assert second_runner.resume("s").raw == "all"
    assert looked_up == ["x"]


def test_the_last_use_of_a_tool_stays_with_the_agent_that_had_it(make: Any) -> None:
    """Two agents at work share a tool that may be used once. The first had it; when the run is
    driven again, the first is late."""
    had, over = threading.Event(), threading.Event()
    builds: list[int] = []

    def waiting(query: str) -> str:
        assert had.wait(_PATIENCE)
        return "waited"

    def call(name: str) -> list[dict[str, Any]]:
        function = {"name": name, "arguments": '{"query": "x"}'}
        return [{"id": name, "type": "function", "function": function}]

    def first(said: str) -> Any:
        if "found x" not in said:
            return call("scarce")
        had.set()
        return "first"

    def second(said: str) -> Any:
        if "usage limit" in said:
            return "second"
        return call("scarce") if "waited" in said else call("wait")

    class Late(BaseModel):
        """Arguments that are ready when the other agent is over, if the run is driven again."""

        query: str

        @field_validator("query")
        @classmethod
        def wait(cls, query: str) -> str:
            assert len(builds) == 1 or over.wait(_PATIENCE)
            return query

    scarce = Tool(name="scarce", max_usage_count=1, args_schema=Late)

    def build(inputs: Any) -> Crew:
        builds.append(1)
        agents = [
            make_agent(llm=ScriptedLLM(first, native=True), tools=[scarce], role="first"),
            make_agent(
                llm=ScriptedLLM(second, native=True),
                tools=[scarce, Tool(waiting, name="wait")],
                role="second",
            ),
        ]
        tasks = [
            Task(
                description=agent.role,
                expected_output="e",
                agent=agent,
                async_execution=True,
                human_input=agent.role == "second",
                callback=lambda output: over.set() if output.agent == "second" else None,
            )
            for agent in agents
        ]
        last = make_agent(lambda said: final("all"))
        join = Task(description="join", expected_output="e", agent=last, context=tasks)
        return Crew(agents=[*agents, last], tasks=[*tasks, join])

    first_runner = make(DaprWorkflowCrewRunner, build, name="scarce")
    Background(first_runner)
    (asked,) = questions(first_runner)
    first_runner.shutdown()
    second_runner = make(DaprWorkflowCrewRunner, build, name="scarce")
    second_runner.answer("s", asked.key, "")
    result = second_runner.resume("s")
    assert [task.raw for task in result.tasks_output] == ["first", "second", "all"]
    assert scarce.calls == ["x"]
