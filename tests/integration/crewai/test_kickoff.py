"""The runners' methods, on crews, agents and flows that are as they are without a runner."""

import asyncio
import threading
from typing import Any

import pytest
from crew_helpers import Background, make_crew, questions
from crewai import Agent, Crew, Flow, Task
from crewai.crews.crew_output import CrewOutput
from crewai.flow.flow import listen, start
from crewai.lite_agent import LiteAgentOutput
from crewai.llms.base_llm import llm_call_context
from pydantic import BaseModel, PrivateAttr
from scripted import ScriptedLLM, Tool, final, searching

from dapr_runners.crewai import (
    CannotRebuildError,
    DaprWorkflowAgentRunner,
    DaprWorkflowCrewRunner,
    DaprWorkflowFlowRunner,
    UnsupportedCrewError,
)
from dapr_runners.engine import (
    RunCancelledError,
    RunNotEndedError,
    RunNotFoundError,
    record_key,
)
from dapr_runners.state import ValueTooLargeError


class Report(BaseModel):
    title: str
    score: int


def _agent(script: Any = None, **options: Any) -> Agent:
    llm = ScriptedLLM(script or searching())
    return Agent(role="r", goal="g {topic}", backstory="b", llm=llm, tools=[Tool()], **options)


def _crew(agent: Agent | None = None, **options: Any) -> Crew:
    agent = agent or _agent()
    task = Task(description="d {topic}", expected_output="e", agent=agent, **options)
    return Crew(agents=[agent], tasks=[task])


def test_a_factory_gives_crewais_own_result(make: Any) -> None:
    def build(inputs: Any) -> Crew:
        script = searching(answer='{"title": "T", "score": 3}')
        return _crew(_agent(script), output_pydantic=Report)

    runner = make(DaprWorkflowCrewRunner, build)
    result = runner.kickoff({"topic": "x"}, session_id="s")
    plain = build(None).kickoff({"topic": "x"})
    assert isinstance(result, CrewOutput)
    assert result == plain
    assert result.pydantic == Report(title="T", score=3)
    assert result.token_usage.successful_requests == 2
    assert result.tasks_output[0].description == "d x"


def test_a_ready_crew_runs_again_and_again_as_if_new(make: Any) -> None:
    crew = _crew()
    runner = make(DaprWorkflowCrewRunner, crew)
    results = [runner.kickoff({"topic": topic}) for topic in ("x", "y", "x")]
    assert [result.tasks_output[0].description for result in results] == ["d x", "d y", "d x"]
    assert [result.token_usage.successful_requests for result in results] == [2, 2, 2]
    assert crew.tasks[0].description == "d {topic}"
    assert crew.tasks[0].output is None
    assert crew.agents[0].goal == "g {topic}"


def test_a_result_that_nobody_received_is_delivered_and_then_a_new_turn_begins(make: Any) -> None:
    agent = _agent()
    runner = make(DaprWorkflowCrewRunner, _crew(agent))
    first = runner.kickoff({"topic": "x"}, session_id="s")
    assert runner.result("s") == first
    assert runner.resume("s") == first
    assert agent.tools[0].calls == ["q0"]
    runner.kickoff({"topic": "x"}, session_id="s")
    assert agent.tools[0].calls == ["q0", "q0"]


async def test_akickoff(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: _crew())
    result = await runner.akickoff({"topic": "x"}, session_id="s")
    assert result.raw == "done"
    assert await runner.aresume("s") == result


def test_kickoff_for_each(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: _crew())
    inputs = [{"topic": "x"}, {"topic": "y"}]
    results = runner.kickoff_for_each(inputs, session_id="s")
    assert [result.tasks_output[0].description for result in results] == ["d x", "d y"]
    again = asyncio.run(runner.akickoff_for_each(inputs))
    assert [result.raw for result in again] == ["done", "done"]


def test_an_agent_gives_its_own_result(make: Any) -> None:
    runner = make(DaprWorkflowAgentRunner, _agent(), max_iterations=7)
    result = runner.kickoff("hello", session_id="s")
    assert isinstance(result, LiteAgentOutput)
    assert result.raw == "done"


async def test_an_agent_works_on_a_task(make: Any) -> None:
    agent = _agent(searching(answer='{"title": "T", "score": 3}'))
    runner = make(DaprWorkflowAgentRunner, agent)
    task = Task(description="look", expected_output="e", agent=agent, output_pydantic=Report)
    events = [event async for event in runner.run_async(task=task, session_id="ticket-981")]
    assert [event["type"] for event in events] == [
        "workflow_started",
        *["step_planned", "step_completed"] * 3,
        "workflow_completed",
    ]
    steps = [(event["kind"], event["step"]) for event in events[1:-1]]
    assert steps[::2] == steps[1::2]
    assert [kind for kind, _ in steps[::2]] == ["llm", "tool", "llm"]
    assert events[0]["agent_role"] == "r"
    assert events[3]["arguments"] == {"query": "q0"}
    assert events[-1]["output"].pydantic == Report(title="T", score=3)
    assert events[-1]["final_response"] == '{"title": "T", "score": 3}'
    assert events[-1]["iterations"] == 2
    ids = [event["id"] for event in events]
    assert len(set(ids)) == len(ids)
    run = events[0]["workflow_id"]
    again = runner.run_async(task=task, session_id="ticket-981", run_id=run)
    assert [event["id"] async for event in again] == ids


class Streaming(ScriptedLLM):
    """Says its answer in pieces; waits for ``heard`` after the first."""

    _heard: threading.Event = PrivateAttr(default_factory=threading.Event)

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        with llm_call_context():
            self._emit_stream_chunk_event("Thought: I now know the final answer\n")
            assert self._heard.wait(60)
            self._emit_stream_chunk_event("Final Answer: done")
        return final("done")


async def test_what_a_model_says_is_heard_while_it_speaks(make: Any) -> None:
    llm = Streaming(final)
    agent = Agent(role="r", goal="g", backstory="b", llm=llm)
    runner = make(DaprWorkflowCrewRunner, lambda inputs: _crew(agent))
    heard: list[str] = []
    seen: list[tuple[str, str]] = []
    async for event in runner.run_async({"topic": "x"}, session_id="s"):
        if "step" in event:
            seen.append((event["type"], event["step"]))
        if event["type"] == "llm_chunk":
            heard.append(event["chunk"])
            llm._heard.set()
    assert heard == ["Thought: I now know the final answer\n", "Final Answer: done"]
    types = ["step_planned", "llm_chunk", "llm_chunk", "step_completed"]
    assert seen == [(type, "main.crew.task0!llm.0") for type in types]


async def test_the_events_of_a_failed_run_say_why(make: Any) -> None:
    def fail(said: str) -> str:
        raise ValueError("no such model")

    runner = make(DaprWorkflowCrewRunner, lambda inputs: _crew(_agent(fail, max_retry_limit=0)))
    events = [event async for event in runner.run_async({"topic": "x"}, session_id="s")]
    assert events[-1]["type"] == "workflow_failed"
    assert events[-1]["error"]["error_type"] == "ValueError"
    assert events[-1]["error"]["message"] == "no such model"
    assert events[1]["type"] == "step_planned"
    failed = [event for event in events if event["type"] == "step_failed"]
    assert failed[0]["error"] == {"message": "no such model", "error_type": "ValueError"}
    with pytest.raises(ValueError, match="no such model"):
        runner.result("s")


class Counting(Flow[dict[str, Any]]):
    @start()
    def first(self) -> str:
        self.state["n"] = 1
        return _agent().kickoff("hello").raw

    @listen(first)
    def second(self, result: str) -> str:
        self.state["n"] += 1
        return f"{result} {self.state['n']}"


@pytest.mark.parametrize("source", [Counting, Counting(), lambda inputs: Counting()])
def test_a_flow(make: Any, source: Any) -> None:
    runner = make(DaprWorkflowFlowRunner, source)
    assert runner.kickoff({"topic": "x"}, session_id="s") == "done 2"


def test_unknown_sessions_and_runs_that_go_on(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: _crew(human_input=True))
    with pytest.raises(RunNotFoundError, match="newest of thread nobody"):
        runner.result("nobody")
    with pytest.raises(RunNotFoundError):
        runner.pending("nobody")
    with pytest.raises(RunNotFoundError):
        runner.answer("nobody", "0:x!human.0", "y")

    running = Background(runner, inputs={"topic": "x"})
    (question,) = questions(runner)
    with pytest.raises(RunNotEndedError):
        runner.result("s")
    runner.answer("s", question.key, "")
    assert running.result() == runner.result("s")


def test_what_is_not_covered_is_refused_before_anything_runs(make: Any, port: int) -> None:
    llm = ScriptedLLM(lambda said: final("x"))
    agent = Agent(role="r", goal="g", backstory="b", llm=llm)
    crew = Crew(agents=[agent], tasks=[Task(description="d", expected_output="e", agent=agent)])
    crew.stream = True
    with pytest.raises(UnsupportedCrewError, match="stream=True"):
        DaprWorkflowCrewRunner(crew, name="refused", port=port)
    runner = make(DaprWorkflowCrewRunner, lambda inputs: crew)
    with pytest.raises(UnsupportedCrewError, match="stream=True"):
        runner.kickoff()
    assert llm.requests == []
    with pytest.raises(UnsupportedCrewError, match="it is a int"):
        DaprWorkflowCrewRunner(3, name="refused", port=port)
    with pytest.raises(UnsupportedCrewError, match="take the one for it"):
        DaprWorkflowCrewRunner(agent, name="refused", port=port)
    with pytest.raises(UnsupportedCrewError, match="its factory returned a str"):
        make(DaprWorkflowCrewRunner, lambda inputs: "x").kickoff()


def test_a_ready_flow_that_cannot_be_built_again_is_refused(port: int) -> None:
    class Named(Flow[dict[str, Any]]):
        @start()
        def first(self) -> str:
            return "x"

    flow = Named()
    flow.state["who"] = "me"
    with pytest.raises(CannotRebuildError, match=r"Named\.state is not the same in a copy"):
        DaprWorkflowFlowRunner(flow, name="refused", port=port)


@pytest.mark.parametrize("name", ["session_id", "thread_id"])
def test_a_cancelled_run_has_no_result_and_can_be_purged(make: Any, name: str) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(human_input=True))
    running = Background(runner)
    questions(runner)
    runner.cancel(**{name: "s"})
    with pytest.raises(RunCancelledError):
        running.result()
    runner.purge(**{name: "s"})
    with pytest.raises(RunNotFoundError):
        runner.result("s")
    for operation in (runner.cancel, runner.terminate_workflow, runner.purge_workflow):
        with pytest.raises(TypeError, match="pass run_id or session_id"):
            operation()


def test_nothing_is_left_of_a_purged_run(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(human_input=True))
    running = Background(runner)
    (question,) = questions(runner)
    runner.answer("s", question.key, "")
    running.result()
    run = runner._resolve(None, "s")
    keys = [record_key(run, key) for key in ("0", "1", question.key, "spec", "end")]
    assert len(runner.store.get_many(keys)) >= 4
    runner.purge(thread_id="s")
    assert runner.store.get_many(keys) == {}


def test_a_value_over_the_limit_is_refused(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(), max_value_size=1000)
    with pytest.raises(ValueTooLargeError, match="inputs is a dict of 2"):
        runner.kickoff({"text": "x" * 2000}, session_id="s")
    with pytest.raises(RunNotFoundError):
        runner.result("s")
