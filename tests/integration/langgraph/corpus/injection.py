"""What LangGraph hands to nodes: runtime, context, config, store."""

from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config, get_store
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from corpus.case import Services, case
from corpus.probe import Probe
from corpus.state import State


@dataclass
class Context:
    user: str = "nobody"


def injected(services: Services) -> Any:
    def by_name(state: State, runtime: Runtime[Context], config: RunnableConfig) -> State:
        assert runtime.store is not None and runtime.execution_info is not None
        runtime.store.put(("memory",), "x", {"value": state["x"]})
        seen = runtime.execution_info
        tags = [tag for tag in config.get("tags", []) if not tag.startswith("graph:")]
        return {
            "log": [
                runtime.context.user,
                config["configurable"].get("custom"),
                config["metadata"].get("langgraph_node"),
                config["metadata"].get("langgraph_step"),
                config["metadata"].get("mine"),
                sorted(tags),
                config.get("recursion_limit"),
                (seen.node_attempt, seen.thread_id, bool(seen.task_id)),
            ]
        }

    def by_keyword(state: State, *, store: BaseStore) -> State:
        found = store.get(("memory",), "x")
        assert found is not None
        step = get_config()["metadata"]["langgraph_step"]
        return {"log": [found.value["value"], step, get_store() is not None]}

    builder = StateGraph(State, context_schema=Context)
    builder.add_node("by name", by_name, metadata={"mine": "M"})
    builder.add_node("by keyword", by_keyword)
    builder.add_edge(START, "by name")
    builder.add_edge("by name", "by keyword")
    return services.compile(builder)


@case(injected)
def everything_injected(it: Probe) -> None:
    config = it.config(configurable={"custom": "C"}, tags=["T"], recursion_limit=11)
    it.invokes({"x": 3}, config, context=Context("ann"))
    it.invokes({"x": 3}, context={"user": "bob"})
