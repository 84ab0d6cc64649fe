"""A graph whose ``stream`` and ``astream`` are a runner's.

LangGraph builds everything else on these two: ``invoke``, ``batch``, ``astream_events`` and their
twins. A copy of the user's graph, of a subclass of its class, gives all of them LangGraph's own
arguments, results and exceptions.
"""

import copy
from typing import Any, Protocol

from langgraph.pregel import Pregel

_TASK_ID = "__pregel_task_id"


class Streams(Protocol):
    """What the copy runs on."""

    def stream(self, input: Any, config: Any = None, **arguments: Any) -> Any: ...
    def astream(self, input: Any, config: Any = None, **arguments: Any) -> Any: ...


def durable_copy(graph: Pregel[Any, Any, Any, Any], streams: Streams, checkpointer: Any) -> Any:
    """A copy of ``graph`` that runs on ``streams``. ``graph`` is not changed."""
    kind: Any = type(graph)

    def stream(self: Any, input: Any, config: Any = None, **arguments: Any) -> Any:
        if _is_nested(config):
            return kind.stream(self, input, config, **arguments)
        return streams.stream(input, config, **arguments)

    def astream(self: Any, input: Any, config: Any = None, **arguments: Any) -> Any:
        if _is_nested(config):
            return kind.astream(self, input, config, **arguments)
        return streams.astream(input, config, **arguments)

    members = {"stream": stream, "astream": astream, "__module__": __name__}
    clone: Any = copy.copy(graph)
    clone.__class__ = type(kind.__name__, (kind,), members)
    clone.checkpointer = checkpointer
    return clone


def _is_nested(config: Any) -> bool:
    return bool(config) and _TASK_ID in (config.get("configurable") or {})
