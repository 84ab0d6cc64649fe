"""People who are asked."""

import json
from typing import Any

from crewai import Crew, Flow
from crewai.flow.flow import listen, start
from crewai.flow.human_feedback import human_feedback

from crew_corpus.case import case
from crew_corpus.hooks import hook_approval
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, final, looks_up
from crew_corpus.probe import Probe


def on_a_loop(it: Probe) -> None:
    it.akicks_off()


def _improves(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        return final("v2" if request.count("make it better") else "v1")

    return crew(task(lab.agent("A", script), human_input=True))


@case(answers=("make it better", ""))
def human_input(lab: Lab) -> Crew:
    return _improves(lab)


@case(on_a_loop, answers=("make it better", ""))
def human_input_on_a_loop(lab: Lab) -> Crew:
    return _improves(lab)


@case(answers=("yes",))
def approval_of_a_tool(lab: Lab) -> Crew:
    hook_approval()
    return crew(task(lab.agent("Approved", looks_up(1, "x"), lab.lookup())))


@case(answers=("bob",))
def question_of_a_flow(lab: Lab) -> Flow[Any]:
    class Asking(Flow):
        @start()
        def ask_name(self) -> str:
            return f"hi {self.ask('name?')}"

    return Asking()


@case(answers=("please no",))
def feedback_on_a_flow(lab: Lab) -> Flow[Any]:
    def script(request: Request) -> str:
        return json.dumps({"outcome": "rejected"}) if request.model else "rejected"

    class Reviewed(Flow):
        @start()
        @human_feedback(
            message="ok?",
            emit=["approved", "rejected"],
            llm=lab.model(script, "reader"),
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

    return Reviewed()
