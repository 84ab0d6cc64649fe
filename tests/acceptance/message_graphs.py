"""Graphs, a crew and a flow whose steps send messages. ``url`` is where webhooks go."""

import operator
import threading
import uuid
from collections.abc import Callable
from contextvars import copy_context
from typing import Annotated, Any, TypedDict

from crewai import Agent, Crew, Flow, Task
from crewai.flow.flow import start
from crewai.tools import tool
from crews import ScriptedLLM, final, use
from harness.effects import Outside
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy, interrupt

from dapr_runners.effects import effect, publish, webhook


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    url: str


def _node(function: Callable[[State], dict[str, Any]], is_async: bool) -> Any:
    async def run(state: State) -> dict[str, Any]:
        return function(state)

    return run if is_async else function


def _tell(outside: Outside, name: str = "tell") -> Callable[[State], dict[str, Any]]:
    """A node that sends two webhooks; what they say is another in each attempt."""

    def tell(state: State) -> dict[str, Any]:
        attempt = uuid.uuid4().hex
        first = webhook(state["url"], {"from": name, "number": 1, "attempt": attempt})
        second = webhook(state["url"], {"from": name, "number": 2, "attempt": attempt})
        outside.report(f"{name} noted", ids=[first, second])
        return {"log": [attempt]}

    return tell


def _chain(tell: Any, is_async: bool, **options: Any) -> Any:
    graph = StateGraph(State)
    graph.add_node("prepare", lambda state: {"log": []})
    graph.add_node("tell", _node(tell, is_async), **options)
    graph.add_node("finish", lambda state: {"log": ["finished"]})
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "tell")
    graph.add_edge("tell", "finish")
    return graph


def alone(outside: Outside, is_async: bool) -> Any:
    """A node that tells, between two others."""
    return _chain(_tell(outside), is_async).compile()


def beside(outside: Outside, is_async: bool) -> Any:
    """Two nodes that tell, beside each other."""
    graph = _chain(_tell(outside), is_async)
    graph.add_node("also", _node(_tell(outside, "also"), is_async))
    graph.add_edge("prepare", "also")
    return graph.compile()


def beside_failing(outside: Outside, is_async: bool) -> Any:
    """Beside the node that tells, one that fails when it is let."""

    def fail(state: State) -> dict[str, Any]:
        outside.report("fail")
        raise ValueError("it fails")

    graph = _chain(_tell(outside), is_async)
    graph.add_node("fail", fail)
    graph.add_edge("prepare", "fail")
    return graph.compile()


def in_subgraph(outside: Outside, is_async: bool) -> Any:
    """A node that tells, in a subgraph that is a node."""
    outer = StateGraph(State)
    outer.add_node("sub", alone(outside, is_async))
    outer.add_edge(START, "sub")
    return outer.compile()


def retried(outside: Outside, is_async: bool) -> Any:
    """LangGraph's own policy: the attempts are one step."""
    policy = RetryPolicy(initial_interval=0.01, jitter=False, retry_on=lambda error: True)
    return _chain(_tell(outside), is_async, retry_policy=policy).compile()


def last(outside: Outside, is_async: bool) -> Any:
    """The node that tells is the last one."""
    graph = StateGraph(State)
    graph.add_node("tell", _node(_tell(outside), is_async))
    graph.add_edge(START, "tell")
    return graph.compile()


def interrupted(outside: Outside, is_async: bool) -> Any:
    """A node that tells, asks, and tells again."""

    def tell(state: State) -> dict[str, Any]:
        webhook(state["url"], "before")
        answer = interrupt("go on?")
        webhook(state["url"], answer)
        return {"log": [answer]}

    return _chain(tell, is_async).compile()


def around_interrupted(outside: Outside, is_async: bool) -> Any:
    """A node that calls a graph of two nodes: the first tells, the second asks."""

    def told(state: State) -> dict[str, Any]:
        outside.report("told")
        webhook(state["url"], "told")
        return {"log": ["told"]}

    inner = StateGraph(State)
    inner.add_node("told", _node(told, is_async))
    inner.add_node("ask", _node(lambda state: {"log": [interrupt("go on?")]}, is_async))
    inner.add_edge(START, "told")
    inner.add_edge("told", "ask")
    called = inner.compile()

    def call(state: State) -> dict[str, Any]:
        webhook(state["url"], "called")
        return {"log": called.invoke({"log": [], "url": state["url"]})["log"]}

    async def call_async(state: State) -> dict[str, Any]:
        webhook(state["url"], "called")
        return {"log": (await called.ainvoke({"log": [], "url": state["url"]}))["log"]}

    graph = StateGraph(State)
    graph.add_node("call", call_async if is_async else call)
    graph.add_edge(START, "call")
    return graph.compile()


def with_tasks(outside: Outside, is_async: bool) -> Any:
    """A @task that tells, called by another, which the entrypoint calls before it reports."""

    def deepest(url: str) -> str:
        attempt = uuid.uuid4().hex
        outside.report("deepest")
        webhook(url, {"from": "deepest", "attempt": attempt})
        return attempt

    if is_async:

        @task
        async def inner_async(url: str) -> str:
            return deepest(url)

        @task
        async def outer_async(url: str) -> str:
            return await inner_async(url)

        @entrypoint()
        async def flow_async(state: State) -> dict[str, Any]:
            attempt = await outer_async(state["url"])
            webhook(state["url"], {"from": "flow"})
            outside.report("flow")
            return {"log": [attempt]}

        return flow_async

    @task
    def inner(url: str) -> str:
        return deepest(url)

    @task
    def outer(url: str) -> str:
        return inner(url).result()

    @entrypoint()
    def flow(state: State) -> dict[str, Any]:
        attempt = outer(state["url"]).result()
        webhook(state["url"], {"from": "flow"})
        outside.report("flow")
        return {"log": [attempt]}

    return flow


def task_then_interrupt(outside: Outside, is_async: bool) -> Any:
    """An entrypoint that asks after a @task told."""

    @task
    def tell(url: str) -> str:
        outside.report("told")
        webhook(url, "told")
        return "told"

    @entrypoint(checkpointer=None)
    def flow(state: State) -> dict[str, Any]:
        webhook(state["url"], "begun")
        said = tell(state["url"]).result()
        return {"log": [said, interrupt("go on?")]}

    return flow


def published(outside: Outside, is_async: bool) -> Any:
    """A node that publishes to topics, and to the pub/sub component that ``url`` names."""

    def tell(state: State) -> dict[str, Any]:
        first = publish("pubsub", "orders", {"order": 7}, metadata={"cloudevent.type": "order"})
        second = publish("pubsub", "orders", "text")
        third = publish(state["url"], "orders", b"\x00")
        return {"log": [first, second, third]}

    return _chain(tell, is_async).compile()


def in_thread(outside: Outside, is_async: bool) -> Any:
    """A node whose thread tells."""

    def tell(state: State) -> dict[str, Any]:
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(webhook, state["url"], "thread"))
        thread.start()
        thread.join()
        return {"log": []}

    return _chain(tell, is_async).compile()


def in_effect(outside: Outside, is_async: bool) -> Any:
    """An effect that would tell."""

    @effect
    def tells(url: str) -> None:
        webhook(url, "x")

    def tell(state: State) -> dict[str, Any]:
        tells(state["url"])
        return {"log": []}

    return _chain(tell, is_async).compile()


def unstorable(outside: Outside, is_async: bool) -> Any:
    """A node that tells, and gives what cannot be stored."""

    def tell(state: State) -> dict[str, Any]:
        webhook(state["url"], "x")
        return {"log": [threading.Lock()]}

    return _chain(tell, is_async).compile()


# -- CrewAI


def crew(outside: Outside) -> Callable[[Any], Any]:
    """A crew with a tool that tells."""

    @tool("tell")
    def tell(what: str) -> str:
        """Tell somebody."""
        url, _, thing = what.partition(" ")
        said = _tell(outside)({"log": [], "url": url})["log"][0]
        return f"told {thing} {said}"

    def build(inputs: Any) -> Crew:
        def script(said: str) -> str:
            return final("done") if "told it" in said else use("tell", what=f"{inputs['url']} it")

        llm = ScriptedLLM(outside, "clerk", script)
        agent = Agent(role="clerk", goal="g", backstory="b", llm=llm, tools=[tell])
        return Crew(agents=[agent], tasks=[Task(description="d", expected_output="e", agent=agent)])

    return build


def model(outside: Outside) -> Callable[[Any], Any]:
    """A crew whose model tells."""

    def build(inputs: Any) -> Crew:
        def script(said: str) -> str:
            _tell(outside)({"log": [], "url": inputs["url"]})
            return final("done")

        llm = ScriptedLLM(outside, "clerk", script)
        agent = Agent(role="clerk", goal="g", backstory="b", llm=llm)
        return Crew(agents=[agent], tasks=[Task(description="d", expected_output="e", agent=agent)])

    return build


def flow(outside: Outside) -> Callable[[Any], Any]:
    """A flow whose method tells."""

    class Telling(Flow[dict[str, Any]]):
        @start()
        def tell(self) -> str:
            outside.report("method")
            found = webhook(self.state["url"], {"from": "flow"})
            outside.report("noted")
            return found

    return lambda inputs: Telling()
