"""Crews on a scripted model, which tell the outside of each model call and each tool call."""

import json
from collections.abc import Callable
from typing import Any

from crewai import Agent, Crew, Flow, Process, Task
from crewai.flow.flow import and_, listen, start
from crewai.llms.base_llm import BaseLLM, llm_call_context
from crewai.tools import BaseTool
from harness.effects import Outside
from pydantic import PrivateAttr

from dapr_runners import current_step

Script = Callable[[str], str]


class ScriptedLLM(BaseLLM):
    """Answers as ``script`` says of the conversation so far."""

    _outside: Outside = PrivateAttr()
    _script: Script = PrivateAttr()
    _name: str = PrivateAttr()

    def __init__(self, outside: Outside, name: str, script: Script) -> None:
        super().__init__(model=f"scripted/{name}")
        self._outside, self._name, self._script = outside, name, script

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        said = json.dumps(messages)
        self._outside.report(f"{self._name} asked")
        answer = self._script(said)
        self._outside.report(f"{self._name} answers")
        tokens = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        self._track_token_usage_internal(tokens)
        return answer

    async def acall(self, messages: Any, *_: Any, **__: Any) -> str:
        return self.call(messages)

    def supports_function_calling(self) -> bool:
        return False


class Search(BaseTool):
    """Reports what is searched for, under which idempotency key."""

    name: str = "search"
    description: str = "Search for something."
    _outside: Outside = PrivateAttr()

    def __init__(self, outside: Outside) -> None:
        super().__init__()
        self._outside = outside

    def _run(self, query: str) -> str:
        step = current_step()
        assert step is not None
        self._outside.report(f"search {query}", key=step.idempotency_key, attempt=step.attempt)
        self._outside.report(f"searched {query}")
        return f"found {query}"


def use(tool: str, **arguments: Any) -> str:
    """The answer of a model that uses a tool."""
    return f"Thought: I use it\nAction: {tool}\nAction Input: {json.dumps(arguments)}\n"


def final(answer: str) -> str:
    """The last answer of a model."""
    return f"Thought: I now know the final answer\nFinal Answer: {answer}"


def searching(prefix: str, count: int, answer: str) -> Script:
    """Searches for ``{prefix}0``, ``{prefix}1``, ..., one after the other."""

    def script(said: str) -> str:
        found = sum(f"found {prefix}{number}" in said for number in range(count))
        return use("search", query=f"{prefix}{found}") if found < count else final(answer)

    return script


def _agent(outside: Outside, role: str, script: Script, **options: Any) -> Agent:
    llm = ScriptedLLM(outside, role, script)
    return Agent(role=role, goal="g", backstory="b", llm=llm, tools=[Search(outside)], **options)


def two_agents(outside: Outside) -> Callable[[Any], Crew]:
    """A researcher searches twice; a writer, who has its notes, once."""

    def build(inputs: Any) -> Crew:
        researcher = _agent(outside, "researcher", searching("a", 2, "notes of {topic}"))
        writer = _agent(outside, "writer", searching("b", 1, "a report"))
        outside.report("built")
        return Crew(
            agents=[researcher, writer],
            tasks=[
                Task(description="Look up {topic}", expected_output="notes", agent=researcher),
                Task(
                    description="Write",
                    expected_output="a report",
                    agent=writer,
                    callback=lambda output: outside.report(f"callback {output.raw}"),
                ),
            ],
        )

    return build


def hierarchical(outside: Outside) -> Callable[[Any], Crew]:
    """A manager delegates to a worker, who searches twice."""

    def delegating(said: str) -> str:
        if "worker's notes" in said:
            return final("managed")
        work = {"task": "look", "context": "c", "coworker": "worker"}
        return use("delegate_work_to_coworker", **work)

    def build(inputs: Any) -> Crew:
        worker = _agent(outside, "worker", searching("w", 2, "worker's notes"))
        return Crew(
            agents=[worker],
            tasks=[Task(description="Do it", expected_output="e", agent=worker)],
            process=Process.hierarchical,
            manager_llm=ScriptedLLM(outside, "manager", delegating),
        )

    return build


def three_at_once(outside: Outside) -> Callable[[Any], Crew]:
    """Three asynchronous tasks, which search twice each, and one that has their results."""

    def build(inputs: Any) -> Crew:
        agents = [
            _agent(outside, f"agent {number}", searching(f"{number}-", 2, f"result {number}"))
            for number in range(3)
        ]
        tasks = [
            Task(description="d", expected_output="e", agent=agent, async_execution=True)
            for agent in agents
        ]
        last = _agent(outside, "last", lambda said: final("all"))
        return Crew(
            agents=[*agents, last],
            tasks=[
                *tasks,
                Task(description="join", expected_output="e", agent=last, context=tasks),
            ],
        )

    return build


class Steps(Flow[dict[str, Any]]):
    """Two methods at once, each with an agent that searches, and one after both."""

    def __init__(self, outside: Outside) -> None:
        super().__init__()
        self._outside = outside

    def _work(self, name: str) -> str:
        self._outside.report(f"method {name}")
        agent = _agent(self._outside, name, searching(f"{name}-", 1, f"result {name}"))
        return agent.kickoff("x").raw

    @start()
    def begin(self) -> str:
        self._outside.report("method begin")
        self.state["begun"] = 1
        return "begun"

    @listen(begin)
    def left(self) -> str:
        return self._work("left")

    @listen(begin)
    def right(self) -> str:
        return self._work("right")

    @listen(and_(left, right))
    def end(self) -> str:
        return f"{self._work('end')} {self.state['begun']}"


def flow(outside: Outside) -> Callable[[Any], Any]:
    """:class:`Steps`."""
    return lambda inputs: Steps(outside)


def reviewed(outside: Outside) -> Callable[[Any], Crew]:
    """One agent searches, and a person reviews what it found."""

    def build(inputs: Any) -> Crew:
        agent = _agent(outside, "researcher", searching("a", 1, "a report"))
        task = Task(description="d", expected_output="e", agent=agent, human_input=True)
        return Crew(agents=[agent], tasks=[task])

    return build


def fickle(outside: Outside) -> Callable[[Any], Crew]:
    """An agent that searches for ``a0``, then for ``a1``, and has enough when it is asked a third
    time, whatever was found."""

    def script(said: str) -> str:
        asked = [event["point"] for event in outside.events()].count("fickle asked")
        tries = [use("search", query="a0"), use("search", query="a1"), final("enough")]
        return tries[asked - 1]

    def build(inputs: Any) -> Crew:
        agent = _agent(outside, "fickle", script)
        return Crew(agents=[agent], tasks=[Task(description="d", expected_output="e", agent=agent)])

    return build


class StreamingLLM(ScriptedLLM):
    """Says its answer in two pieces, and tells the outside in between."""

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        with llm_call_context():
            self._emit_stream_chunk_event("Final ")
            self._outside.report("said the first")
            self._emit_stream_chunk_event("Answer: done")
        return final("done")


def streaming(outside: Outside) -> Callable[[Any], Crew]:
    """One agent, whose model streams."""

    def build(inputs: Any) -> Crew:
        llm = StreamingLLM(outside, "speaker", final)
        agent = Agent(role="speaker", goal="g", backstory="b", llm=llm)
        return Crew(agents=[agent], tasks=[Task(description="d", expected_output="e", agent=agent)])

    return build
