"""Crews that processes of a test trace, each for itself."""

import json
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import traced_graphs as graphs
from exported import FileExporter, provider_to
from opentelemetry import trace
from pydantic import PrivateAttr

from dapr_runners.engine import process_worker
from dapr_runners.state import StateStore, sidecar_address
from dapr_runners.telemetry import instrument

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # CrewAI's own
    from crewai import Agent, Crew, Task
    from crewai.llms.base_llm import BaseLLM
    from crewai.tools import BaseTool

    from dapr_runners.crewai import DaprWorkflowCrewRunner


class ScriptedLLM(BaseLLM):
    """Answers what ``script`` makes of the messages (as JSON)."""

    _script: Callable[[str], str] = PrivateAttr()

    def __init__(self, script: Callable[[str], str]) -> None:
        super().__init__(model="scripted-1", provider="azure", temperature=0.5)
        self._script = script

    def call(self, messages: Any, *_: Any, **__: Any) -> str:
        with graphs.own_span("in model"):
            tokens = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
            self._track_token_usage_internal(tokens)
            return self._script(json.dumps(messages, default=str))

    def supports_function_calling(self) -> bool:
        return False


class Search(BaseTool):
    """Waits while a file says so."""

    name: str = "search"
    description: str = "Search for something."

    def _run(self, query: str) -> str:
        with graphs.own_span("in search"):
            pass
        hold = Path(os.environ.get(graphs.HOLD, "/nothing"))
        if hold.exists():
            hold.with_suffix(".entered").touch()
            threading.Event().wait()
        return f"found {query}"


def searching(said: str) -> str:
    if "found a secret" in said:
        return "Thought: I now know the final answer\nFinal Answer: done"
    return 'Thought: I use it\nAction: search\nAction Input: {"query": "a secret"}\n'


def answering(said: str) -> str:
    return "Thought: I now know the final answer\nFinal Answer: a secret"


def checked(output: Any) -> tuple[bool, Any]:
    """Code of the user's between two steps."""
    with graphs.own_span("in guardrail"):
        return True, output.raw


def crew(_: Any = None) -> Crew:
    """Two tasks: a model that answers, and one that searches before."""
    first = Agent(role="first", goal="g", backstory="b", llm=ScriptedLLM(answering))
    second = Agent(
        role="second", goal="g", backstory="b", llm=ScriptedLLM(searching), tools=[Search()]
    )
    tasks = [
        Task(description="answer", expected_output="e", agent=first, guardrail=checked),
        Task(description="search", expected_output="e", agent=second),
    ]
    return Crew(agents=[first, second], tasks=tasks)


def traced() -> list[DaprWorkflowCrewRunner]:
    """For worker processes."""
    warnings.simplefilter("ignore")  # CrewAI's own
    provider = provider_to(FileExporter(Path(os.environ[graphs.SPANS])))
    trace.set_tracer_provider(provider)
    instrument()
    address = sidecar_address()
    store, worker = StateStore(address=address), process_worker(address)
    return [DaprWorkflowCrewRunner(crew, name="crew", store=store, worker=worker)]
