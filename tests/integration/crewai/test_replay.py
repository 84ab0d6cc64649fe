"""A program that is driven again over what is recorded: by another process, or another program."""

import logging
import threading
from typing import Any

import pytest
from crew_helpers import Background, make_agent, make_crew, questions, until
from crewai import Crew, Flow
from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMCallCompletedEvent
from crewai.events.types.task_events import TaskCompletedEvent, TaskStartedEvent
from crewai.events.types.tool_usage_events import ToolUsageFinishedEvent
from crewai.flow.flow import FlowState, listen, or_, start
from pydantic import BaseModel
from scripted import ScriptedLLM, final, searching

from dapr_runners.crewai import (
    DaprWorkflowCrewRunner,
    DaprWorkflowFlowRunner,
    StepMismatchError,
)


def _asking(description: str = "d", **options: Any) -> Crew:
    return make_crew(
        make_agent(searching(count=2)), description=description, human_input=True, **options
    )


def test_a_changed_prompt_is_found_out(make: Any) -> None:
    first = make(DaprWorkflowCrewRunner, lambda inputs: _asking("say hello"), name="changes")
    Background(first)
    questions(first)
    first.shutdown()
    second = make(DaprWorkflowCrewRunner, lambda inputs: _asking("say goodbye"), name="changes")
    second.answer("s", second.pending("s")[0].key, "")
    with pytest.raises(StepMismatchError) as raised:
        second.resume("s")
    assert raised.value.step == "llm"
    removed, added = (
        next(line for line in raised.value.diff.splitlines() if line.startswith(sign + " "))
        for sign in ("-", "+")
    )
    assert "say hello" in removed
    assert "say goodbye" in added


def test_a_changed_prompt_is_accepted_if_one_says_so(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    first = make(DaprWorkflowCrewRunner, lambda inputs: _asking("say hello"), name="accepts")
    Background(first)
    questions(first)
    first.shutdown()
    second = make(
        DaprWorkflowCrewRunner,
        lambda inputs: _asking("say goodbye"),
        name="accepts",
        on_mismatch="accept",
    )
    with caplog.at_level(logging.WARNING, "dapr_runners"):
        second.answer("s", second.pending("s")[0].key, "")
        assert second.resume("s").raw == "done"
    assert "say goodbye" in caplog.text


def test_a_program_that_asks_for_less_is_found_out(make: Any) -> None:
    first = make(DaprWorkflowCrewRunner, lambda inputs: _asking(), name="less")
    Background(first)
    questions(first)
    first.shutdown()
    second = make(
        DaprWorkflowCrewRunner,
        lambda inputs: make_crew(make_agent(searching(count=2))),
        name="less",
    )
    second.answer("s", second.pending("s")[0].key, "")
    with pytest.raises(StepMismatchError, match="ended without asking for it"):
        second.resume("s")


def test_listeners_and_callbacks_see_each_event_once(make: Any) -> None:
    seen: list[str] = []

    def build(inputs: Any) -> Crew:
        return _asking(callback=lambda output: seen.append("callback"))

    with crewai_event_bus.scoped_handlers():
        for kind in (
            TaskStartedEvent,
            TaskCompletedEvent,
            ToolUsageFinishedEvent,
            LLMCallCompletedEvent,
        ):
            crewai_event_bus.on(kind)(lambda source, event: seen.append(event.type))
        first = make(DaprWorkflowCrewRunner, build, name="once")
        Background(first)
        questions(first)
        first.shutdown()
        second = make(DaprWorkflowCrewRunner, build, name="once")
        second.answer("s", second.pending("s")[0].key, "")
        assert second.resume("s").token_usage.successful_requests == 3
        crewai_event_bus.flush()
    assert sorted(seen) == [
        "callback",
        "task_completed",
        "task_started",
        "tool_usage_finished",
        "tool_usage_finished",
    ]


_runs: list[str] = []
_llm = ScriptedLLM(searching())


class Stepwise(Flow[dict[str, Any]]):
    @start()
    def first(self) -> str:
        _runs.append("first")
        self.state["n"] = 1
        self.state["id seen"] = self.state["id"]
        return make_agent(llm=_llm).kickoff("hello").raw

    @listen(first)
    def second(self, result: str) -> str:
        return f"{result} {self.ask('go on?')}"

    @listen(second)
    def third(self, result: str) -> str:
        _runs.append("third")
        return f"{result} {self.state['n']} {self.state['id seen'] == self.state['id']}"


def test_methods_of_a_flow_that_ended_are_not_run_again(make: Any) -> None:
    first = make(DaprWorkflowFlowRunner, Stepwise, name="stepwise")
    Background(first)
    questions(first)
    first.shutdown()
    second = make(DaprWorkflowFlowRunner, Stepwise, name="stepwise")
    second.answer("s", second.pending("s")[0].key, "yes")
    assert second.resume("s") == "done yes 1 True"
    assert _runs == ["first", "third"]
    assert len(_llm.requests) == 2


def test_methods_of_a_flow_end_in_the_order_they_did(make: Any) -> None:
    """The second of two starts was the first to end, and what waits for either went on with it."""
    joined, ended = threading.Event(), threading.Event()

    def late(said: str) -> str:
        assert joined.wait(60)
        return final("late")

    class Race(Flow[dict[str, Any]]):
        @start()
        def late(self) -> str:
            result = make_agent(late).kickoff("x").raw
            ended.set()
            return result

        @start()
        def early(self) -> str:
            return make_agent(lambda said: final("early")).kickoff("x").raw

        @listen(or_(late, early))
        def join(self, first: str) -> str:
            joined.set()
            answers = [self.ask("go on?"), self.ask("and now?")]
            return " ".join([first, *map(str, answers)])

    first = make(DaprWorkflowFlowRunner, lambda inputs: Race(), name="race")
    Background(first)
    (asked,) = questions(first)
    assert ended.wait(60)
    first.answer("s", asked.key, "yes")
    (asked,) = until(lambda: [each for each in first.pending("s") if each.prompt == "and now?"])
    first.shutdown()
    second = make(DaprWorkflowFlowRunner, lambda inputs: Race(), name="race")
    second.answer("s", asked.key, "done")
    assert second.resume("s") == "early yes done"


def test_the_state_of_an_inner_flow_has_classes_of_its_own(make: Any) -> None:
    class Message(BaseModel):
        text: str

    class State(FlowState):
        latest: Message | None = None

    class Inner(Flow[State]):
        @start()
        def write(self) -> None:
            self.state.latest = Message(text="hello")

        @listen(write)
        def read(self) -> str:
            assert isinstance(self.state.latest, Message)
            return self.state.latest.text

    class Outer(Flow[dict[str, Any]]):
        @start()
        def run(self) -> str:
            inner = Inner()
            return f"{inner.kickoff()} {self.ask('go on?')}"

    first = make(DaprWorkflowFlowRunner, lambda inputs: Outer(), name="inner")
    Background(first)
    (asked,) = questions(first)
    first.shutdown()
    second = make(DaprWorkflowFlowRunner, lambda inputs: Outer(), name="inner")
    second.answer("s", asked.key, "yes")
    assert second.resume("s") == "hello yes"
