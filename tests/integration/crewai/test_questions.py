"""Questions to people are durable waits."""

import gc
import threading
from typing import Any

import pytest
from crew_helpers import Background, make_agent, make_crew, questions, until
from crewai import Crew, Flow, Task
from crewai.flow.flow import listen, start
from crewai.flow.human_feedback import human_feedback
from scripted import Roomy, ScriptedLLM, Tool, final, searching

from dapr_runners.crewai import (
    AlreadyAnsweredError,
    DaprWorkflowCrewRunner,
    DaprWorkflowFlowRunner,
    QuestionNotFoundError,
)


def _reviewed(said: str) -> str:
    return final("better") if "make it better" in said else final("draft")


_MANY = 40


def test_a_task_is_reviewed_until_its_reviewer_is_content(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["make it better", ""])
    with monkeypatch.context() as patch:
        patch.setattr("builtins.input", lambda *_: next(typed))
        plain = make_crew(make_agent(_reviewed), human_input=True).kickoff()
    llm = ScriptedLLM(_reviewed)
    runner = make(
        DaprWorkflowCrewRunner, lambda inputs: make_crew(make_agent(llm=llm), human_input=True)
    )
    running = Background(runner)
    (first,) = questions(runner)
    assert first.about["task"] == "d"
    assert "Feedback" in first.prompt
    runner.answer("s", first.key, "make it better")
    second = until(lambda: [q for q in questions(runner) if q.key != first.key])[0]
    runner.answer("s", second.key, "")
    assert running.result().raw == plain.raw  # 1.14 takes the answer from before the review
    assert len(llm.requests) == 2
    assert runner.pending("s") == []


def test_an_answer_counts_once(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(human_input=True))
    running = Background(runner)
    (question,) = questions(runner)
    with pytest.raises(QuestionNotFoundError, match=r"asks no question '0:main!human\.7' now"):
        runner.answer("s", "0:main!human.7", "x")
    with pytest.raises(QuestionNotFoundError):
        runner.answer("s", "nonsense", "x")
    runner.answer("s", question.key, "")
    runner.answer("s", question.key, "")
    with pytest.raises(AlreadyAnsweredError, match="the first counts"):
        runner.answer("s", question.key, "another")
    assert running.result().raw == "done"


def test_an_answer_reaches_a_process_that_did_not_ask(make: Any) -> None:
    llm = ScriptedLLM(searching())
    tool = Tool()

    def build(inputs: Any) -> Crew:
        return make_crew(make_agent(llm=llm, tools=[tool]), human_input=True)

    first = make(DaprWorkflowCrewRunner, build, name="asks-and-goes")
    Background(first)
    (question,) = questions(first)
    first.shutdown()
    second = make(DaprWorkflowCrewRunner, build, name="asks-and-goes")
    assert second.pending("s") == [question]
    second.answer("s", question.key, "")
    assert second.resume("s").raw == "done"
    assert len(llm.requests) == 2
    assert tool.calls == ["q0"]


def test_others_go_on_while_one_waits(make: Any) -> None:
    """For so long that the workflow continues as new with the question open."""
    other = Tool()

    def build(inputs: Any) -> Crew:
        asking = make_agent(role="asking")
        llm = Roomy(searching("q-", _MANY))
        working = make_agent(llm=llm, tools=[other], role="working", max_iter=2 * _MANY)
        tasks = [
            Task(
                description="ask",
                expected_output="e",
                agent=asking,
                human_input=True,
                async_execution=True,
            ),
            Task(description="work", expected_output="e", agent=working, async_execution=True),
        ]
        last = Task(description="last", expected_output="e", agent=working, context=tasks)
        return Crew(agents=[asking, working], tasks=[*tasks, last])

    runner = make(DaprWorkflowCrewRunner, build)
    running = Background(runner)
    (question,) = questions(runner)
    until(lambda: len(other.calls) == _MANY)
    runner.answer("s", question.key, "")
    assert running.result().raw == "done"


def test_who_waits_holds_no_thread(make: Any) -> None:
    runner = make(DaprWorkflowCrewRunner, lambda inputs: make_crew(human_input=True))
    with Background(runner, "warm"):
        runner.answer("warm", questions(runner, "warm")[0].key, "")
    gc.collect()
    callers = [Background(runner, f"s{number}") for number in range(5)]
    open_questions = [questions(runner, f"s{number}")[0] for number in range(5)]
    until(lambda: not any(t.name.startswith("crewai-") for t in threading.enumerate()))
    for number, (caller, question) in enumerate(zip(callers, open_questions, strict=True)):
        runner.answer(f"s{number}", question.key, "")
        assert caller.result().raw == "done"


class Asking(Flow[dict[str, Any]]):
    @start()
    def greet(self) -> str:
        return f"hi {self.ask('your name?', metadata={'channel': 'x'})}"


def test_a_flow_asks(make: Any) -> None:
    runner = make(DaprWorkflowFlowRunner, Asking)
    running = Background(runner)
    (question,) = questions(runner)
    assert question.prompt == "your name?"
    assert question.about == {"flow": "Asking", "metadata": {"channel": "x"}}
    runner.answer("s", question.key, "bob")
    assert running.result() == "hi bob"


class Reviewed(Flow[dict[str, Any]]):
    @start()
    @human_feedback(
        message="good?",
        emit=["approved", "rejected"],
        llm=ScriptedLLM(lambda said: "rejected"),
        default_outcome="approved",
    )
    def draft(self) -> str:
        return "draft"

    @listen("approved")
    def publish(self, result: Any) -> str:
        return "published"

    @listen("rejected")
    def rework(self, result: Any) -> str:
        return f"reworked: {result.feedback}"


def test_a_flow_takes_feedback(make: Any) -> None:
    runner = make(DaprWorkflowFlowRunner, Reviewed)
    running = Background(runner)
    (question,) = questions(runner)
    runner.answer("s", question.key, "please no")
    assert running.result() == "reworked: please no"


async def test_events_tell_of_questions(make: Any) -> None:
    runner = make(DaprWorkflowFlowRunner, Asking)
    seen: list[str] = []
    async for event in runner.run_async(session_id="s"):
        seen.append(event["type"])
        if event["type"] == "human_input_required":
            assert event["prompt"] == "your name?"
            runner.answer("s", event["key"], "eve")
    assert seen == [
        "workflow_started",
        "human_input_required",
        "human_input_received",
        "workflow_completed",
    ]
