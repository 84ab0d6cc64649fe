"""Tasks that run at the same time."""

from crewai import Crew

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import looks_up
from crew_corpus.probe import Probe


def _joined(lab: Lab, roles: tuple[str, str], descriptions: tuple[str, str]) -> Crew:
    both = [
        task(lab.agent(role, looks_up(2, f"from {role}"), lab.lookup()), text, async_execution=True)
        for role, text in zip(roles, descriptions, strict=True)
    ]
    return crew(*both, task(lab.agent("Z", looks_up(0, "joined")), "join", context=both))


@case(concurrent=True)
def asynchronous_tasks(lab: Lab) -> Crew:
    return _joined(lab, ("A", "B"), ("first", "second"))


@case(concurrent=True)
def asynchronous_tasks_with_one_prompt(lab: Lab) -> Crew:
    return _joined(lab, ("Same", "Same"), ("same", "same"))


def on_a_loop(it: Probe) -> None:
    it.akicks_off()


@case(on_a_loop, concurrent=True)
def asynchronous_tasks_on_a_loop(lab: Lab) -> Crew:
    return _joined(lab, ("A", "B"), ("first", "second"))
