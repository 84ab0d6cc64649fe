"""A model that answers as a script says, and tools that count their calls."""

import json
from collections.abc import Callable
from typing import Any

from crewai.llms.base_llm import BaseLLM
from crewai.tools import BaseTool
from pydantic import PrivateAttr

Script = Callable[[str], Any]


class ScriptedLLM(BaseLLM):
    """Answers what ``script`` makes of the messages (as JSON)."""

    _script: Script = PrivateAttr()
    _native: bool = PrivateAttr()
    _requests: list[str] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[str]:
        """What it was asked, its copies too."""
        return self._requests

    def __init__(self, script: Script, native: bool = False, name: str = "scripted") -> None:
        super().__init__(model=name)
        self._script, self._native = script, native

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        said = json.dumps(messages, default=str)
        self.requests.append(said)
        tokens = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        self._track_token_usage_internal(tokens)
        return self._script(said)

    async def acall(self, messages: Any, *_: Any, **__: Any) -> Any:
        return self.call(messages)

    def supports_function_calling(self) -> bool:
        return self._native


class Tool(BaseTool):
    """Does what ``body`` does; ``calls`` are what it was called with."""

    name: str = "search"
    description: str = "Search for something."
    _body: Callable[[str], Any] = PrivateAttr()
    _calls: list[str] = PrivateAttr(default_factory=list)

    @property
    def calls(self) -> list[str]:
        """What it was called with, its copies too."""
        return self._calls

    def __init__(self, body: Callable[[str], Any] | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._body = body or (lambda query: f"found {query}")

    def _run(self, query: str) -> Any:
        self.calls.append(query)
        return self._body(query)


def use(tool: str, **arguments: Any) -> str:
    """The answer of a model that uses a tool."""
    return f"Thought: I use it\nAction: {tool}\nAction Input: {json.dumps(arguments)}\n"


def final(answer: str) -> str:
    """The last answer of a model."""
    return f"Thought: I now know the final answer\nFinal Answer: {answer}"


def searching(prefix: str = "q", count: int = 1, answer: str = "done") -> Script:
    """Searches for ``{prefix}0``, ``{prefix}1``, ..., one after the other."""

    def script(said: str) -> str:
        found = sum(f"found {prefix}{number}" in said for number in range(count))
        return use("search", query=f"{prefix}{found}") if found < count else final(answer)

    return script


class Roomy(ScriptedLLM):
    """A model whose context never fills up."""

    def get_context_window_size(self) -> int:
        return 10**9

    def get_input_tokens_count(self, *_: Any, **__: Any) -> int:
        return 1
