"""Agents that have others do the work."""

from crewai import Crew, Process

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, call, final, looks_up, use

_WORK = {"task": "find", "context": "the context", "coworker": "Worker"}


@case()
def hierarchical(lab: Lab) -> Crew:
    def manager(request: Request) -> str:
        if request.count("notes from worker"):
            return final("managed")
        return use("delegate_work_to_coworker", **_WORK)

    worker = lab.agent("Worker", looks_up(1, "notes from worker"), lab.lookup())
    manager_llm = lab.model(manager, "manager")
    return crew(task(worker), process=Process.hierarchical, manager_llm=manager_llm)


@case()
def hierarchical_native(lab: Lab) -> Crew:
    def manager(request: Request) -> object:
        if request.count("notes from worker"):
            return "managed"
        return [call("m1", "delegate_work_to_coworker", **_WORK)]

    worker = lab.agent("Worker", looks_up(1, "notes from worker"), lab.lookup())
    manager_llm = lab.model(manager, "manager", native=True)
    return crew(task(worker), process=Process.hierarchical, manager_llm=manager_llm)


@case()
def question_to_a_coworker(lab: Lab) -> Crew:
    def asking(request: Request) -> str:
        if request.count("answer from B"):
            return final("asked")
        return use("ask_question_to_coworker", question="why", context="c", coworker="B")

    asks = lab.agent("A", asking, allow_delegation=True)
    knows = lab.agent("B", looks_up(1, "answer from B"), lab.lookup())
    return Crew(agents=[asks, knows], tasks=[task(asks)])
