"""A graph whose ``stream`` and ``astream`` are a runner's.

LangGraph builds everything else on these two: ``invoke``, ``batch``, ``astream_events`` and their
twins. A copy of the user's graph, of a subclass of its class, gives all of them LangGraph's own
arguments, results and exceptions.
"""

import copy
import functools
from typing import Any, Protocol

from langchain_core.runnables.config import merge_configs
from langgraph.pregel import Pregel

LAST_ONLY = "__last_only"
"""Argument of ``stream`` with which ``invoke`` asks for those chunks that it does not drop."""
_TASK_ID = "__pregel_task_id"
_SEND = "__pregel_send"


class Streams(Protocol):
    """What the copy runs on."""

    def stream(self, input: Any, config: Any = None, **arguments: Any) -> Any: ...
    def astream(self, input: Any, config: Any = None, **arguments: Any) -> Any: ...
    def for_another_tenant(self, config: Any) -> Any:
        """The copy for the tenant that ``config`` names, if that is not this one's."""
        ...


_OF_THE_END: dict[str, Any] = {name: getattr(Pregel, name) for name in ("invoke", "ainvoke")}
"""Taken at import: LangGraph's own."""
_OF_STATE = (
    "get_state",
    "aget_state",
    "get_state_history",
    "aget_state_history",
    "update_state",
    "aupdate_state",
    "bulk_update_state",
    "abulk_update_state",
)


def durable_copy(graph: Pregel[Any, Any, Any, Any], streams: Streams, checkpointer: Any) -> Any:
    """A copy of ``graph`` that runs on ``streams``. ``graph`` is not changed."""
    kind: Any = type(graph)

    def stream(self: Any, input: Any, config: Any = None, **arguments: Any) -> Any:
        if _is_nested(config):
            return kind.stream(self, input, config, **arguments)
        return streams.stream(input, _with_added(self, graph, config), **arguments)

    def astream(self: Any, input: Any, config: Any = None, **arguments: Any) -> Any:
        if _is_nested(config):
            return kind.astream(self, input, config, **arguments)
        return streams.astream(input, _with_added(self, graph, config), **arguments)

    def of_tenant(name: str) -> Any:
        of_graph = getattr(kind, name)

        @functools.wraps(of_graph)
        def call(self: Any, config: Any, *args: Any, **arguments: Any) -> Any:
            if not _is_nested(config):
                whole = merge_configs(self.config, config)
                if (other := streams.for_another_tenant(whole)) is not None:
                    return getattr(other, name)(whole, *args, **arguments)
            return of_graph(self, config, *args, **arguments)

        return call

    def last_of(name: str) -> Any:
        of_graph = getattr(kind, name)

        @functools.wraps(of_graph)
        def call(self: Any, input: Any, config: Any = None, **arguments: Any) -> Any:
            if not _is_nested(config) and _wants_values(arguments):
                arguments[LAST_ONLY] = True
            return of_graph(self, input, config, **arguments)

        return call

    members = {"stream": stream, "astream": astream, "__module__": __name__}
    members |= {name: last_of(name) for name in _OF_THE_END if _is_own(kind, name)}
    members |= {name: of_tenant(name) for name in _OF_STATE}
    clone: Any = copy.copy(graph)
    clone.__class__ = type(kind.__name__, (kind,), members)
    clone.checkpointer = checkpointer
    return clone


def _is_own(kind: Any, name: str) -> bool:
    """Whether ``kind`` leaves method ``name`` as LangGraph has it, which passes on to ``stream``
    the arguments that it does not know."""
    return getattr(kind, name) is _OF_THE_END[name]


def _wants_values(arguments: dict[str, Any]) -> bool:
    """Whether a call of ``invoke`` makes its result of ``updates`` and ``values`` of the root graph
    alone, and nothing is to be seen before."""
    plain = arguments.get("stream_mode", "values") == "values"
    plain = plain and arguments.get("version", "v1") == "v1"
    return plain and not any(arguments.get(name) for name in ("subgraphs", "print_mode", "debug"))


def _is_nested(config: Any) -> bool:
    """Whether a node calls, with the config that LangGraph has given it. Some programs pass on what
    they were sent as configurable: a function cannot be in that."""
    conf: Any = config.get("configurable") if config else None
    return bool(conf) and _TASK_ID in conf and callable(conf.get(_SEND))


def _with_added(copied: Any, graph: Any, config: Any) -> Any:
    """``config`` with what ``with_config`` has added to the copy. What ``graph`` itself is bound to
    comes in where it runs."""
    own, base = copied.config, graph.config
    if not own or own is base:
        return config
    added: Any = dict(own)
    bound: Any = base.get("callbacks") if base else None
    if isinstance(bound, list) and isinstance(own.get("callbacks"), list):
        added["callbacks"] = [each for each in own["callbacks"] if each not in bound]
    return merge_configs(added, config)
