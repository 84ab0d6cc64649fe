"""The crew that is timed: an agent whose model uses a trivial tool, again and again."""

import json
import time
from collections.abc import Callable
from typing import Any

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM, llm_call_context
from crewai.tools import BaseTool
from pydantic import PrivateAttr


class RoundsModel(BaseLLM):
    """Uses the tool ``rounds`` times, then answers."""

    rounds: int = 0

    def __init__(self, rounds: int) -> None:
        super().__init__(model="scripted/rounds", rounds=rounds)

    def supports_function_calling(self) -> bool:
        return True

    def get_context_window_size(self) -> int:
        return 1_000_000

    def get_input_tokens_count(self, messages: Any, *_: Any, **__: Any) -> int:
        return 100

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        with llm_call_context():
            done = sum(message["role"] == "tool" for message in messages)
            if done >= self.rounds:
                return "done"
            function = {"name": "count", "arguments": json.dumps({"number": done})}
            return [{"id": f"call-{done}", "type": "function", "function": function}]


class Count(BaseTool):
    """Does nothing. ``clock`` gets the time (s) of each use."""

    name: str = "count"
    description: str = "Count on."
    _clock: list[float] | None = PrivateAttr()

    def __init__(self, clock: list[float] | None) -> None:
        super().__init__()
        self._clock = clock

    def _run(self, number: int) -> str:
        if self._clock is not None:
            self._clock.append(time.perf_counter())
        return f"fact {number}"


def rounds(
    clock: list[float] | None = None, human_input: bool = False
) -> Callable[[dict[str, int]], Crew]:
    """A factory of crews of ``inputs["rounds"]`` rounds: one answer of the model and one use of the
    tool each. With ``human_input`` a person is asked at the end."""

    def build(inputs: dict[str, int]) -> Crew:
        agent = Agent(
            role="Counter",
            goal="Count",
            backstory="You count.",
            llm=RoundsModel(inputs["rounds"]),
            tools=[Count(clock)],
            max_iter=inputs["rounds"] + 5,
            cache=False,
        )
        task = Task(
            description="Count", expected_output="A count", agent=agent, human_input=human_input
        )
        return Crew(agents=[agent], tasks=[task], cache=False)

    return build
