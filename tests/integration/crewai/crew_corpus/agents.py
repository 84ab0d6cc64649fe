"""Agents: by themselves, with callbacks and hooks, that plan, and on a model class of one's own."""

import json
from typing import Any

from crewai import Agent, Crew, PlanningConfig

from crew_corpus.case import case
from crew_corpus.hooks import hook_everything
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, ScriptedModel, call, looks_up
from crew_corpus.probe import Probe


def with_a_message(it: Probe) -> None:
    it.says("hello")


@case(with_a_message)
def by_itself(lab: Lab) -> Agent:
    return lab.agent("A", looks_up(1, "alone"), lab.lookup())


class LoggingModel(ScriptedModel):
    """Overrides what it inherits, and calls it."""

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self._log.add("code", {"code": "LoggingModel.call"})
        return super().call(messages, *args, **kwargs)


@case()
def subclass_of_a_model(lab: Lab) -> Crew:
    model = LoggingModel(looks_up(1, "inherited"), lab.log, "A")
    agent = Agent(role="A", goal="g", backstory="b", llm=model, tools=[lab.lookup()])
    return crew(task(agent))


@case(again=True)
def callbacks_and_hooks(lab: Lab) -> Crew:
    hook_everything()

    def before(inputs: dict[str, Any] | None) -> dict[str, Any]:
        return {**(inputs or {}), "k": 1}

    def after(output: Any) -> Any:
        lab.saw("after", raw=output.raw)
        return output

    agent = lab.agent(
        "Hooked",
        looks_up(1, "shy"),
        lab.lookup(),
        step_callback=lambda step: lab.saw("step", type=type(step).__name__),
    )
    return crew(
        task(agent, "with {k}", callback=lambda output: lab.saw("task", raw=output.raw)),
        task_callback=lambda output: lab.saw("crew", raw=output.raw),
        before_kickoff_callbacks=[before],
        after_kickoff_callbacks=[after],
    )


_STEPS = [
    {"step_number": 1, "description": "S1", "tool_to_use": "lookup", "depends_on": []},
    {"step_number": 2, "description": "S2", "tool_to_use": "lookup", "depends_on": []},
    {"step_number": 3, "description": "S3", "tool_to_use": None, "depends_on": [1, 2]},
]
_OBSERVATION = {
    "step_completed_successfully": True,
    "key_information_learned": "k",
    "remaining_plan_still_valid": True,
    "needs_full_replan": False,
    "goal_already_achieved": False,
    "suggested_refinements": [],
}


@case(concurrent=True)
def planned_steps_in_parallel(lab: Lab) -> Crew:
    def script(request: Request) -> Any:
        if request.tools[:1] == ["create_reasoning_plan"]:
            return json.dumps({"plan": "p", "ready": True, "steps": _STEPS})
        if request.model == "StepObservation":
            return json.dumps(_OBSERVATION)
        step = next((each for each in ("S1", "S2") if each in request.last), None)
        if request.tools and step and "S3" not in request.last and not request.count("fact<"):
            return [call("r1", "lookup", q=step)]
        return "step answer"

    config = PlanningConfig(reasoning_effort="medium", max_attempts=1)
    agent = lab.agent("A", script, lab.lookup(), native=True, planning_config=config)
    return crew(task(agent))
