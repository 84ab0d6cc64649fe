"""Small crews, and a kickoff in the background."""

import threading
import time
from collections.abc import Callable
from typing import Any, Self

from crewai import Agent, Crew, Task
from scripted import ScriptedLLM, Tool, searching

from dapr_runners.engine import RunNotFoundError


def make_agent(script: Any = None, tools: list[Any] | None = None, **options: Any) -> Agent:
    """An agent that searches once."""
    llm = options.pop("llm", None) or ScriptedLLM(script or searching())
    tools = [Tool()] if tools is None else tools
    role = options.pop("role", "r")
    return Agent(role=role, goal="g", backstory="b", llm=llm, tools=tools, **options)


def make_crew(agent: Agent | None = None, **options: Any) -> Crew:
    """A crew of one agent with one task."""
    agent = agent or make_agent()
    options.setdefault("description", "d")
    return Crew(agents=[agent], tasks=[Task(expected_output="e", agent=agent, **options)])


class Background:
    """``kickoff`` in a thread; its result is asked for at the end."""

    def __init__(self, runner: Any, session: str = "s", inputs: Any = None) -> None:
        self._result: list[Any] = []
        self._session = session
        self._thread = threading.Thread(
            target=self._run, args=(runner.kickoff, inputs), daemon=True
        )
        self._thread.start()

    def _run(self, kickoff: Callable[..., Any], inputs: Any) -> None:
        try:
            self._result.append(kickoff(inputs, session_id=self._session))
        except BaseException as error:
            self._result.append(error)

    def result(self) -> Any:
        """What came of it."""
        self._thread.join(60)
        found = self._result[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)


def until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """What ``condition`` returns once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not so after {seconds} s")
        time.sleep(0.01)
    return found


def questions(runner: Any, session: str = "s") -> list[Any]:
    """The open questions, once there are some."""

    def look() -> Any:
        try:
            return runner.pending(session)
        except RunNotFoundError:
            return None

    return until(look)
