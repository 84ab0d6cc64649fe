"""Tools: failures, retries, limits, and what they can ask about their step."""

import json
import threading
import time
from typing import Any

import pytest
from crew_helpers import make_agent, make_crew
from crewai import Crew, Task
from crewai.tools import tool
from scripted import ScriptedLLM, Tool, final, searching, use

from dapr_runners import CurrentStep, current_step
from dapr_runners.crewai import DaprWorkflowCrewRunner, ToolRetry
from dapr_runners.state import UnstorableValueError


def _run(make: Any, body: Any, script: Any = None, **options: Any) -> tuple[Any, Tool, ScriptedLLM]:
    tool_, llm = Tool(body), ScriptedLLM(script or searching())
    runner = make(
        DaprWorkflowCrewRunner,
        lambda inputs: make_crew(make_agent(llm=llm, tools=[tool_])),
        **options,
    )
    return runner.kickoff(session_id="s"), tool_, llm


def test_a_failing_tool_is_crewais_own_matter(make: Any) -> None:
    def fail(query: str) -> str:
        raise ValueError("kaput")

    def script(said: str) -> str:
        return final("told") if "kaput" in said else use("search", query="q0")

    _, plain_tool, plain_llm = None, Tool(fail), ScriptedLLM(script)
    plain = make_crew(make_agent(llm=plain_llm, tools=[plain_tool])).kickoff()
    result, tool_, llm = _run(make, fail, script)
    assert result.raw == plain.raw == "told"
    assert tool_.calls == plain_tool.calls
    assert llm.requests == plain_llm.requests


def test_the_runner_retries_before_the_agent_is_told(make: Any) -> None:
    times: list[float] = []

    def fail_twice(query: str) -> str:
        times.append(time.monotonic())
        if len(times) < 3:
            raise ValueError("kaput")
        return f"found {query}"

    retry = ToolRetry(max_attempts=3, first_interval=0.2, backoff=2, retry_on=[ValueError])
    result, tool_, llm = _run(make, fail_twice, retry=retry)
    assert result.raw == "done"
    assert tool_.calls == ["q0"] * 3
    assert times[1] - times[0] >= 0.2
    assert times[2] - times[1] >= 0.4
    assert "kaput" not in "".join(llm.requests)


def test_a_retry_is_for_the_tools_and_errors_it_names(make: Any) -> None:
    retry = ToolRetry(max_attempts=9, first_interval=0, retry_on=[ValueError], tools=["search"])
    assert retry.pause("other", ValueError(), 1) is None
    assert retry.pause("search", KeyError(), 1) is None
    assert retry.pause("search", ValueError(), 1) == 0
    assert retry.pause("search", ValueError(), 9) is None
    with pytest.raises(ValueError, match="max_attempts must be at least 1"):
        ToolRetry(max_attempts=0)


def test_a_result_that_cannot_be_stored_fails_the_run(make: Any) -> None:
    with pytest.raises(UnstorableValueError, match="what search returned") as raised:
        _run(make, lambda query: threading.Lock())
    assert raised.value.type_name == "_thread.lock"


def test_a_tool_that_hangs_is_given_up_and_the_agent_is_told(make: Any) -> None:
    go_on = threading.Event()

    def hang(query: str) -> str:
        go_on.wait(60)
        return "late"

    def script(said: str) -> Any:
        return "told" if "took longer" in said else [_call("search", query="q0")]

    try:
        tool_, llm = Tool(hang), ScriptedLLM(script, native=True)
        runner = make(
            DaprWorkflowCrewRunner,
            lambda inputs: make_crew(make_agent(llm=llm, tools=[tool_])),
            step_timeout=3,
        )
        result = runner.kickoff(session_id="s")
    finally:
        go_on.set()
    assert "told" in result.raw
    assert "took longer than its limit of 3 s and was given up" in llm.requests[-1]


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call-{name}", "type": "function", "function": function}


def test_a_tool_reads_the_idempotency_key_of_its_step(make: Any) -> None:
    steps: list[CurrentStep | None] = []

    def look(query: str) -> str:
        steps.append(current_step())
        return f"found {query}"

    _run(make, look, searching(count=2))
    first, second = steps
    assert first is not None and second is not None
    assert first.idempotency_key != second.idempotency_key
    assert first.attempt == 1
    assert current_step() is None


def test_each_tool_call_is_an_activity_named_for_the_tool(make: Any) -> None:
    @tool("look up")
    def look_up(query: str) -> str:
        """Look it up."""
        return f"found {query}"

    def script(said: str) -> str:
        return final("done") if "found" in said else use("look_up", query="q0")

    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(make_agent(script, [look_up])))
    runner.kickoff(session_id="s")
    run = runner._resolve(None, "s")
    history = runner._worker.client.get_workflow_history(run)
    assert f"{runner.name}/look_up" in str(history)


def test_tool_calls_at_once_are_recorded_each(make: Any) -> None:
    meet = threading.Barrier(3, timeout=60)

    def together(query: str) -> str:
        meet.wait()
        return f"found {query}"

    def script(said: str) -> Any:
        if "found" in said:
            return "all found"
        return [_call("search", query=f"q{number}") | {"id": f"c{number}"} for number in range(3)]

    llm, tool_ = ScriptedLLM(script, native=True), Tool(together)
    runner = make(
        DaprWorkflowCrewRunner, lambda inputs: make_crew(make_agent(llm=llm, tools=[tool_]))
    )
    assert runner.kickoff(session_id="s").raw == "all found"
    assert sorted(tool_.calls) == ["q0", "q1", "q2"]
    found = [llm.requests[1].index(f"found q{number}") for number in range(3)]
    assert found == sorted(found)


def test_a_time_limit_counts_the_recorded_steps(make: Any) -> None:
    def slow(query: str) -> str:
        threading.Event().wait(4.2)
        return f"found {query}"

    tool_ = Tool(slow)

    def build(inputs: Any) -> Crew:
        agent = make_agent(tools=[tool_], max_execution_time=4)
        task = Task(description="d", expected_output="e", agent=agent)
        return Crew(agents=[agent], tasks=[task])

    runner = make(DaprWorkflowCrewRunner, build)
    with pytest.raises(TimeoutError, match="Task 'd' execution timed out after 4 seconds"):
        runner.kickoff(session_id="s")
    assert tool_.calls == ["q0"]


def test_a_time_limit_ends_a_tool_that_hangs(make: Any) -> None:
    go_on = threading.Event()
    hanging = Tool(lambda query: go_on.wait(60))
    agent = make_agent(tools=[hanging], max_execution_time=1)
    runner = make(DaprWorkflowCrewRunner, make_crew(agent))
    try:
        with pytest.raises(TimeoutError, match="Task 'd' execution timed out after 1 seconds"):
            runner.kickoff(session_id="s")
    finally:
        go_on.set()


def test_a_time_limit_ends_a_model_that_hangs(make: Any) -> None:
    go_on = threading.Event()
    hanging = ScriptedLLM(lambda said: str(go_on.wait(60)))
    agent = make_agent(llm=hanging, max_execution_time=1)
    runner = make(DaprWorkflowCrewRunner, make_crew(agent))
    try:
        with pytest.raises(TimeoutError, match="Task 'd' execution timed out after 1 seconds"):
            runner.kickoff(session_id="s")
    finally:
        go_on.set()
