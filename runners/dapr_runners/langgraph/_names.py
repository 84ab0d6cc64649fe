"""Activity names: each node's own, so that traces, metrics and limits speak of nodes."""

from collections.abc import Iterator
from typing import Any

from langgraph.pregel import Pregel

from dapr_runners.langgraph._step import subgraph_of

COMMIT = "__commit__"
START = "__start__"


def step_name(path: str, node: str) -> str:
    """Name of the activity of ``node`` in the (sub)graph at ``path`` (``""`` is the root)."""
    name = str.__str__(node)  # of an Enum member that is a string, its value
    return f"{path}/{name}" if path else name


def activity_names(graph: Pregel[Any, Any, Any, Any], path: str = "") -> Iterator[str]:
    """All activities of ``graph`` and of the subgraphs whose nodes are steps of their own."""
    yield step_name(path, START)
    yield step_name(path, COMMIT)
    for node in graph.nodes:
        name = step_name(path, node)
        yield name
        inner = subgraph_of(graph, node)
        if inner is not None:
            yield from activity_names(inner, name)
