"""A crew of two that answers a customer: a clerk who looks and refunds, a writer who replies.

It is plain CrewAI. ``support_crew`` makes it, and is what a runner is given: each process that
works on a run makes a crew of its own with it.
"""

from typing import Any

from crewai import Agent, Crew, Task
from crewai.tools import tool
from model import CLERK, WRITER, model_of
from outside import tell


@tool("find_order")
def find_order(order: str) -> str:
    """What was ordered, and what became of it."""
    tell("find_order")
    return f"{order}: one lamp, 49 EUR, for Ada; delivered, reported as broken"


@tool("refund")
def refund(order: str, euros: int) -> str:
    """Pay money back for an order."""
    tell("refund")
    return f"{euros} EUR refunded for {order}"


@tool("send_reply")
def send_reply(customer: str, text: str) -> str:
    """Send a mail to a customer."""
    tell("send_reply")
    return f"mail to {customer}: {text}"


def support_crew(inputs: dict[str, Any]) -> Crew:
    """The crew that answers ``inputs["message"]``."""
    clerk = Agent(
        role=CLERK,
        goal="Find out what went wrong with an order, and put it right",
        backstory="You know every order, and refund what arrived broken.",
        tools=[find_order, refund],
        llm=model_of(CLERK),
    )
    writer = Agent(
        role=WRITER,
        goal="Answer customers kindly and shortly",
        backstory="You write what a customer can understand.",
        tools=[send_reply],
        llm=model_of(WRITER),
    )
    settle = Task(
        description="Settle what the customer writes: {message}",
        expected_output="What was wrong, and what was done about it",
        agent=clerk,
    )
    reply = Task(
        description="Tell the customer what was done, in a mail",
        expected_output="What the customer was told",
        agent=writer,
        context=[settle],
    )
    return Crew(agents=[clerk, writer], tasks=[settle, reply])
