"""Commands about runs of crews, which know nothing of the crew."""

import json
from typing import Any

import pytest
from crew_helpers import Background, make_agent, make_crew, questions, until
from scripted import ScriptedLLM, Tool, searching
from typer.testing import CliRunner

from dapr_runners.cli._app import app
from dapr_runners.crewai import DaprWorkflowCrewRunner
from dapr_runners.effects import effect


@pytest.fixture
def command(port: int) -> Any:
    """What a command prints, which has to exit with ``code``."""

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, [*arguments, "--dapr-grpc-port", str(port)])
        assert result.exit_code == code, result.output
        return result.output

    return run


def newest(command: Any, runner: Any) -> str:
    listed = json.loads(command("list", "--runner", runner.name, "--json"))
    return listed[0]["run_id"]


def until_waiting(command: Any, run: str) -> None:
    """A question is known a moment before its run waits with it."""
    until(lambda: json.loads(command("show", run, "--json"))["status"] == "waiting")


async def test_the_events_are_those_of_the_runner(make: Any, command: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew())
    seen = [event async for event in runner.run_async(session_id="s")]
    again = [event async for event in runner.events(session_id="s")]
    assert again == [{**event, "replayed": True} for event in seen]
    printed = command("events", newest(command, runner), "--json").splitlines()
    told = [json.loads(line) for line in printed]
    assert [(e["type"], e["id"]) for e in told] == [(e["type"], e["id"]) for e in seen]
    assert told[-1]["final_response"] == "done"
    assert told[-1]["output"]["type"] == "crewai.crews.crew_output.CrewOutput"


def test_the_steps_of_a_crew(make: Any, command: Any) -> None:
    @effect
    def look_up(query: str) -> str:
        return f"found {query}"

    def build(inputs: Any) -> Any:
        return make_crew(make_agent(tools=[Tool(look_up)]), human_input=True)

    runner = make(DaprWorkflowCrewRunner, build)
    running = Background(runner)
    (question,) = questions(runner)
    run = newest(command, runner)
    until_waiting(command, run)
    shown = json.loads(command("show", run, "--json"))
    steps = [(step["name"], step["status"]) for step in shown["steps"]]
    assert steps == [
        ("llm", "completed"),
        ("search", "completed"),
        ("llm", "completed"),
        ("human", "waiting"),
    ]
    (looked,) = shown["steps"][1]["effects"]
    assert looked["status"] == "succeeded"
    assert shown["waits_for"] == [question.key]
    runner.answer("s", question.key, "")
    assert running.result().raw == "done"


def test_a_question_is_answered(make: Any, command: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(human_input=True))
    running = Background(runner)
    (question,) = questions(runner)
    run = newest(command, runner)
    until_waiting(command, run)
    (told,) = json.loads(command("show", run, "--json"))["questions"]
    assert (told["key"], told["prompt"]) == (question.key, question.prompt)
    (listed,) = json.loads(command("questions", "--json"))
    assert (listed["run_id"], listed["thread"], listed["key"]) == (run, "s", question.key)
    assert question.key in command("questions", "--runner", runner.name)
    assert f"dapr-runners answer {run} KEY VALUE" in command("resume", run, code=5)
    assert "asks no question" in command("answer", run, "0:main!human.7", "x", code=3)
    said = command("answer", "--thread", "s", "--runner", runner.name, question.key, "17")
    assert said == f"Answered. {run} goes on with it.\n"
    assert "the first counts" in command("answer", run, question.key, "other", code=5)
    (again,) = [q for q in questions(runner) if q.key != question.key]
    command("answer", run, again.key, "")
    assert running.result().raw == "done"


def test_a_failed_crew_goes_on_from_where_it_failed(make: Any, command: Any) -> None:
    broken = [True]
    tool = Tool()

    def script(said: str) -> str:
        if "found q0" in said and broken[0]:
            raise ConnectionError("the model is away")
        return searching()(said)

    llm = ScriptedLLM(script)
    runner = make(
        DaprWorkflowCrewRunner, lambda inputs: make_crew(make_agent(llm=llm, tools=[tool]))
    )
    with pytest.raises(ConnectionError, match="the model is away"):
        runner.kickoff(session_id="s")
    run = newest(command, runner)
    steps = json.loads(command("show", run, "--json"))["steps"]
    assert steps[-1]["error"] == "ConnectionError: the model is away"
    refused = command("retry", run, "--from", "search", code=5)
    assert "what a crew does after a step lives in its program" in refused
    asked, used = len(llm.requests), list(tool.calls)
    broken[0] = False
    assert command("retry", run) == f"{run} goes on.\n"
    assert runner.resume("s").raw == "done"
    assert (len(llm.requests), tool.calls) == (asked + 1, used)
