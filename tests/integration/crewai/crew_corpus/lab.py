"""What a case's factory is given: agents on scripted models, and tools that leave a trace."""

from typing import Any

from crewai import Agent, Crew, Task
from crewai.tools import tool

from crew_corpus.log import Log
from crew_corpus.model import Script, ScriptedModel


class Lab:
    """Makes the parts of crews. Models and tools of one run of a case share a log."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def did(self, tool: str, **what: Any) -> None:
        """Log one execution of a tool."""
        self.log.add("tool", {"tool": tool, **what})

    def saw(self, code: str, **what: Any) -> None:
        """Log one execution of other code of the user's: a callback, a method of a flow."""
        self.log.add("code", {"code": code, **what})

    def model(self, script: Script, name: str, native: bool = False) -> ScriptedModel:
        return ScriptedModel(script, self.log, name, native)

    def agent(self, role: str, script: Script, *tools: Any, **options: Any) -> Agent:
        """An agent whose model follows ``script``."""
        model = self.model(script, role, options.pop("native", False))
        goal = f"the goal of {role}"
        return Agent(role=role, goal=goal, backstory="b", llm=model, tools=list(tools), **options)

    def lookup(self) -> Any:
        """A tool that knows a fact about everything."""

        @tool("lookup")
        def lookup(q: str) -> str:
            """Look up q."""
            self.did("lookup", q=q)
            return f"fact<{q}>"

        return lookup

    def broken(self) -> Any:
        """A tool that always fails."""

        @tool("broken")
        def broken(q: str) -> str:
            """Fail."""
            self.did("broken", q=q)
            raise ValueError(f"kaput {q}")

        return broken


def task(agent: Agent, description: str = "the task", **options: Any) -> Task:
    return Task(description=description, expected_output="an answer", agent=agent, **options)


def crew(*tasks: Task, **options: Any) -> Crew:
    """A crew of the tasks, and of their agents."""
    options.setdefault(
        "cache", False
    )  # on in CrewAI 1.14, and which of two agents is first is chance
    agents = {id(each.agent): each.agent for each in tasks}
    return Crew(agents=list(agents.values()), tasks=list(tasks), **options)
