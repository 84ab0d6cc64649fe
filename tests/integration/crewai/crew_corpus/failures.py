"""Models and crews that fail."""

from crewai import Crew

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, final, looks_up, use


@case()
def model_fails_once(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        if request.number == 1:
            raise RuntimeError("provider down")
        return final("second attempt")

    return crew(task(lab.agent("A", script)))


@case(raises=True)
def model_fails_always(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        raise RuntimeError("always down")

    return crew(task(lab.agent("A", script)))


@case()
def model_fails_after_a_tool(lab: Lab) -> Crew:
    """CrewAI begins the task again, and its cache spares the tool."""

    def script(request: Request) -> str:
        if request.number == 2:
            raise RuntimeError("down after the payment")
        return final("paid") if request.count("fact<") else use("lookup", q="pay")

    return crew(task(lab.agent("A", script, lab.lookup())))


@case(raises=True)
def asynchronous_task_fails(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        raise ValueError("something happened here")

    return crew(task(lab.agent("A", script, max_retry_limit=0), async_execution=True))


@case(concurrent=True, raises=True, orphans=True)
def two_tasks_at_once_on_one_agent(lab: Lab) -> Crew:
    agent = lab.agent("A", looks_up(1, "x"), lab.lookup())
    both = [task(agent, f"t{number}", async_execution=True) for number in range(2)]
    return crew(*both, task(agent, "join", context=both))
