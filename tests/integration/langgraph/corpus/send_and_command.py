"""Send and Command: map-reduce, goto, jumps out of a subgraph, commands as input."""

from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from corpus.case import Services, case
from corpus.marks import mark
from corpus.probe import Probe
from corpus.state import State, logs


def map_reduce(services: Services) -> Any:
    def work(item: dict[str, int]) -> State:
        mark("work")
        return {"log": [f"work {item['i']}"]}

    builder = StateGraph(State)
    builder.add_node("plan", logs("plan"))
    builder.add_node("work", work)
    builder.add_node("reduce", lambda state: {"x": len(state["log"])})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda state: [Send("work", {"i": i}) for i in range(8)], ["work"]
    )
    builder.add_edge("work", "reduce")
    return services.compile(builder)


@case(map_reduce)
def send_map_reduce(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_history()


def jumping(services: Services) -> Any:
    def start(state: State) -> Command[Literal["b", "c"]]:
        mark("start")
        return Command(goto=["b", Send("c", {"x": 42})], update={"log": ["start"]})

    def again(state: State) -> Command[Literal["start", "__end__"]]:
        goto = END if len(state["log"]) > 6 else "start"
        return Command(goto=goto, update=[("log", ["again"]), ("x", state["x"] + 1)])

    builder = StateGraph(State)
    builder.add_node("start", start)
    builder.add_node("b", lambda state: {"log": [f"b {state.get('x')}"]})
    builder.add_node("c", lambda state: {"log": [f"c {state.get('x')}"]})
    builder.add_node("again", again)
    builder.add_edge(START, "start")
    builder.add_edge(["b", "c"], "again")
    return services.compile(builder)


@case(jumping)
def command_goto_and_update(it: Probe) -> None:
    it.invokes({"x": 0})
    it.shows_history()


def jumping_out(services: Services) -> Any:
    def jump(state: State) -> Any:
        goto = [Send("landing", {"x": 77})]
        return Command(graph=Command.PARENT, goto=goto, update={"log": ["jump"]})

    inner = StateGraph(State)
    inner.add_node("first", logs("first"))
    inner.add_node("jump", jump)
    inner.add_edge(START, "first")
    inner.add_edge("first", "jump")
    builder = StateGraph(State)
    builder.add_node("inner", inner.compile(), destinations=("landing",))
    builder.add_node("landing", lambda state: {"log": [f"landing {state.get('x')}"]})
    builder.add_edge(START, "inner")
    return services.compile(builder)


@case(jumping_out)
def command_to_the_parent_graph(it: Probe) -> None:
    it.invokes({"x": 1})
    it.shows_history()


def asking(services: Services) -> Any:
    builder = StateGraph(State)
    builder.add_node("a", logs("a"))
    builder.add_node("ask", lambda state: {"log": ["ask " + interrupt("?")]})
    builder.add_node("aside", logs("aside"))
    builder.add_edge(START, "a")
    builder.add_edge("a", "ask")
    return services.compile(builder)


@case(asking)
def command_as_input(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes(Command(resume="answer", update={"x": 9}))
    it.invokes(Command(goto="aside", update={"log": ["update"]}))
    it.shows_history()


@case(asking)
def new_input_discards_a_question(it: Probe) -> None:
    it.invokes({"x": 0})
    it.invokes({"x": 1})
    it.shows_state()
    it.invokes(Command(resume="answer"))
