"""Tools: native and by text, cached, limited, typed, asynchronous, failing, and of MCP servers."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

from crewai import Crew
from crewai.mcp import MCPServerStdio
from crewai.tools import BaseTool, tool
from pydantic import BaseModel, PrivateAttr

from crew_corpus.case import case
from crew_corpus.lab import Lab, crew, task
from crew_corpus.model import Request, call, final, looks_up, use

_MCP_SERVER = Path(__file__).with_name("mcp_server.py")


@case()
def cached_over_tasks(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        return final("f") if request.count("fact<") else use("lookup", q="same")

    lookup = lab.lookup()
    first, second = lab.agent("A", script, lookup), lab.agent("B", script, lookup)
    return crew(task(first, "t1"), task(second, "t2", context=[]), cache=True)


@case(concurrent=True)
def native_in_parallel(lab: Lab) -> Crew:
    def script(request: Request) -> Any:
        if request.count("fact<"):
            return "parallel done"
        return [call(f"c{number}", "lookup", q=f"p{number}") for number in range(3)]

    return crew(task(lab.agent("A", script, lab.lookup(), native=True)))


@case()
def native_that_fails(lab: Lab) -> Crew:
    def script(request: Request) -> Any:
        return "saw error" if request.count("kaput") else [call("c1", "broken", q="z")]

    return crew(task(lab.agent("A", script, lab.broken(), native=True)))


@case()
def by_text_that_fails(lab: Lab) -> Crew:
    """CrewAI calls it six times for one answer of the model."""

    def script(request: Request) -> str:
        return final("saw error") if request.count("kaput") else use("broken", q="z")

    return crew(task(lab.agent("A", script, lab.broken())))


@case()
def two_by_text_that_fail(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        seen = {each for each in ("kaput y", "kaput z") if request.count(each)}
        if len(seen) == 2:
            return final("saw both")
        return use("broken", q="z" if "kaput y" in seen else "y")

    return crew(task(lab.agent("A", script, lab.broken(), lab.lookup())))


@case()
def result_as_answer(lab: Lab) -> Crew:
    @tool("answer", result_as_answer=True)
    def answer(q: str) -> str:
        """Answer."""
        lab.did("answer", q=q)
        return f"the answer {q}"

    return crew(task(lab.agent("A", lambda _: use("answer", q="z"), answer)))


@case()
def used_at_most_once(lab: Lab) -> Crew:
    @tool("once", max_usage_count=1)
    def once(q: str) -> str:
        """Once."""
        lab.did("once", q=q)
        return f"fact<{q}>"

    def script(request: Request) -> str:
        if request.count("usage limit"):
            return final("limited")
        return use("once", q=f"z{request.count('fact<')}")

    return crew(task(lab.agent("A", script, once)))


class Thing(BaseModel):
    a: int
    b: list[str]


class Typed(BaseTool):
    """A tool that gives an object."""

    name: str = "typed"
    description: str = "typed"
    _lab: Any = PrivateAttr()

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self._lab = lab

    def _run(self, q: str) -> Thing:
        self._lab.did("typed", q=q)
        return Thing(a=1, b=["x"])


@case()
def typed_result(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        if request.count('"a"') or request.count("a=1"):
            return final("typed")
        return use("typed", q="z")

    return crew(task(lab.agent("A", script, Typed(lab))))


@case()
def asynchronous(lab: Lab) -> Crew:
    @tool("later")
    async def later(q: str) -> str:
        """Look up, asynchronously."""
        lab.did("later", q=q)
        await asyncio.sleep(0)
        return f"fact<{q}>"

    return crew(task(lab.agent("A", looks_up(1, "async ok", "later"), later)))


@case()
def of_an_mcp_server(lab: Lab) -> Crew:
    def script(request: Request) -> str:
        if request.count("fact<"):
            return final("mcp ok")
        found = re.search(r"Tool Name: (\w+?)\\n", str(request.messages))
        assert found is not None, request.messages
        return use(found[1], q="m")

    server = MCPServerStdio(
        command=sys.executable,
        args=[str(_MCP_SERVER)],
        env={**os.environ, "CREW_CORPUS_LOG": str(lab.log.file("tool"))},
    )
    return crew(task(lab.agent("A", script, mcps=[server])))
