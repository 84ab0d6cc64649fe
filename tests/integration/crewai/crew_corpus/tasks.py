"""Tasks in a row: context, conditions, typed outputs, guardrails, planning."""

import json
from typing import Any

from crewai import Crew
from crewai.tasks.conditional_task import ConditionalTask
from pydantic import BaseModel

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, final, looks_up
from crew_corpus.probe import Probe


class Report(BaseModel):
    title: str
    score: int


def with_a_topic(it: Probe) -> None:
    it.kicks_off({"topic": "otters"})


@case(with_a_topic)
def context_between_tasks(lab: Lab) -> Crew:
    first = task(lab.agent("A", looks_up(2, "notes"), lab.lookup()), "look into {topic}")
    second = task(lab.agent("B", looks_up(0, "final")), "write it up", context=[first])
    return crew(first, second)


@case()
def skipped_by_a_condition(lab: Lab) -> Crew:
    agent = lab.agent("A", looks_up(0, "x"))
    maybe = ConditionalTask(
        description="maybe",
        expected_output="an answer",
        agent=agent,
        condition=lambda output: "y" in output.raw,
    )
    return crew(task(agent, "first"), maybe, task(agent, "last"))


@case()
def output_pydantic(lab: Lab) -> Crew:
    agent = lab.agent("A", looks_up(1, {"title": "T", "score": 3}), lab.lookup())
    return crew(task(agent, output_pydantic=Report))


@case()
def output_json(lab: Lab) -> Crew:
    return crew(task(lab.agent("A", looks_up(0, {"title": "T", "score": 3})), output_json=Report))


@case()
def output_pydantic_by_a_second_call(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        is_conversion = "score nine" in request.last and len(request.messages) <= 2
        if request.model is not None or is_conversion:
            return '{"title": "converted", "score": 9}'
        return final("the title is converted and score nine")

    return crew(task(lab.agent("A", script, lab.lookup()), output_pydantic=Report))


@case()
def output_file(lab: Lab) -> Crew:
    def read_back(output: Any) -> None:
        lab.saw("callback", text=lab.log.file("txt").read_text())

    kept = task(lab.agent("A", looks_up(1, "kept"), lab.lookup()))
    # An absolute path is refused in the constructor.
    kept.output_file = str(lab.log.file("txt"))
    again = task(lab.agent("B", looks_up(0, "read")), callback=read_back)
    return crew(kept, again)


@case()
def guardrail_of_a_function(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        return final("good" if request.count("too short") else "bad")

    def guard(output: Any) -> tuple[bool, Any]:
        return (True, output.raw) if output.raw == "good" else (False, "too short")

    return crew(task(lab.agent("A", script), guardrail=guard))


@case()
def guardrail_of_a_model(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        if request.model is not None or "Guardrail:" in str(request.messages):
            is_good = "Task result:\n        good" in request.last
            return json.dumps({"valid": is_good, "feedback": None if is_good else "be good"})
        return final("good" if request.count("be good") else "bad")

    return crew(task(lab.agent("A", script), guardrail="the answer is good"))


@case()
def guardrail_of_a_typed_output(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        report = {"title": "T", "score": request.number}
        return json.dumps(report) if request.model or request.number > 1 else final(report)

    def guard(output: Any) -> tuple[bool, Any]:
        is_enough = json.loads(output.raw)["score"] >= 2
        return (True, output.raw) if is_enough else (False, "score too low")

    options: Any = {"guardrail": guard, "guardrail_max_retries": 3}
    return crew(task(lab.agent("A", script), output_pydantic=Report, **options))


@case()
def planning(lab: Lab) -> Crew:
    def planner(request: Request) -> str:
        plans = [
            {"task_number": 1, "task": "t", "plan": " PLAN-A"},
            {"task_number": 2, "task": "u", "plan": " PLAN-B"},
        ]
        answer = {"list_of_plans_per_task": plans}
        return json.dumps(answer) if request.model is not None else final(answer)

    agent = lab.agent("A", looks_up(1, "planned"), lab.lookup())
    options: Any = {"planning": True, "planning_llm": lab.model(planner, "planner")}
    return crew(task(agent, "t"), task(agent, "u"), **options)


def for_two(it: Probe) -> None:
    it.kicks_off_for_each([{"x": 1}, {"x": 2}])


@case(for_two)
def for_each_input(lab: Lab) -> Crew:
    return crew(task(lab.agent("A", looks_up(1, "each"), lab.lookup()), "do {x}"))


@case(for_two)
def for_each_input_with_context(lab: Lab) -> Crew:
    first = task(lab.agent("A", looks_up(0, "first")), "t1 {x}")
    return crew(first, task(lab.agent("B", looks_up(0, "second")), "t2"))
