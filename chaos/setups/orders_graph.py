"""prepare -> charge -> finalize, as a LangGraph graph."""

from collections.abc import Callable
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class Order(TypedDict, total=False):
    """The graph's state."""

    order: str
    key: str | None
    charge: str
    finalized: bool


def orders_graph(
    prepare: Callable[[], str | None],
    charge: Callable[[str | None], str],
    finalize: Callable[[], None],
    checkpointer: Any = None,
) -> Any:
    """The graph: ``prepare`` gives the key that is saved, which ``charge`` is given."""

    def prepare_order(state: Order) -> Order:
        return {"key": prepare()}

    def charge_order(state: Order) -> Order:
        return {"charge": charge(state.get("key"))}

    def finalize_order(state: Order) -> Order:
        finalize()
        return {"finalized": True}

    graph = StateGraph(Order)
    graph.add_node("prepare", prepare_order)
    graph.add_node("charge", charge_order)
    graph.add_node("finalize", finalize_order)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "charge")
    graph.add_edge("charge", "finalize")
    graph.add_edge("finalize", END)
    return graph.compile(checkpointer=checkpointer)
