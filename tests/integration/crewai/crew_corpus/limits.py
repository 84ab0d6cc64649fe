"""Limits of an agent, and what a model does wrong."""

import time

from crewai import Crew
from crewai.tools import tool
from crewai.utilities.exceptions.context_window_exceeding_exception import (
    LLMContextLengthExceededError,
)

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, final, looks_up, use


@case()
def max_iterations(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        known = request.count("fact<")
        is_forced = request.messages[-1]["role"] == "user" and "must" in request.last.lower()
        if known >= 3 and is_forced and "final answer" in request.last.lower():
            return final("forced")
        return use("lookup", q=f"q{known}")

    return crew(task(lab.agent("A", script, lab.lookup(), max_iter=3)))


@case()
def max_requests_a_minute(lab: Lab) -> Crew:
    return crew(task(lab.agent("A", looks_up(3, "slow"), lab.lookup(), max_rpm=100)))


@case(raises=True, orphans=True)
def max_execution_time(lab: Lab) -> Crew:
    """CrewAI lets the agent go on to its end, and raises then."""

    @tool("slow")
    def slow(q: str) -> str:
        """Slow."""
        lab.did("slow", q=q)
        time.sleep(1.1)  # longer than it may take
        return f"fact<{q}>"

    return crew(task(lab.agent("A", looks_up(1, "late", "slow"), slow, max_execution_time=1)))


@case()
def date_in_the_prompt(lab: Lab) -> Crew:
    return crew(task(lab.agent("A", looks_up(1, "dated"), lab.lookup(), inject_date=True)))


@case()
def answer_that_cannot_be_read(lab: Lab) -> Crew:
    """CrewAI takes it for the final one."""
    return crew(task(lab.agent("A", lambda _: "Thought: t\nAction: lookup\n", lab.lookup())))


@case()
def context_window_exceeded(lab: Lab) -> Crew:
    """CrewAI has the talk summarised, and ends."""

    def script(request: Request) -> str:
        if "structured summaries" in str(request.messages[0]["content"]):
            return "<summary>SUMMARY</summary>"
        raise LLMContextLengthExceededError("context length exceeded")

    return crew(task(lab.agent("A", script, lab.lookup(), respect_context_window=True)))
