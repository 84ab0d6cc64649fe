"""What the codec must know of LangGraph: which classes a graph's values may have, and how
LangGraph's own plain classes are stored."""

import functools
import inspect
import sys
from collections.abc import Iterable, Iterator
from typing import Any, cast

from langgraph.pregel import Pregel
from langgraph.types import Send

from dapr_runners.state import AllowList, Codec, Extension

_LANGUAGE_MODULES = (
    "langchain_core.messages",
    "langchain_core.documents",
    "langchain_core.prompt_values",
    "langchain_core.outputs",
    "langgraph.types",
    "langgraph.errors",
    "langgraph.runtime",
    "langgraph.store.base",
    "langgraph.checkpoint.serde.types",
)
"""Modules whose data classes a graph's values commonly are."""


def codec_for(
    graph: Pregel[Any, Any, Any, Any],
    allow_types: Iterable[Any],
    max_value_size: int | None = None,
) -> Codec:
    """The codec for a graph's values: it rebuilds the classes its schemas name, the data classes of
    the modules its functions come from, LangChain's and LangGraph's own, and ``allow_types``."""
    extra = list(allow_types)
    extensions: list[Extension[Any]] = [item for item in extra if isinstance(item, Extension)]
    classes = [item for item in extra if not isinstance(item, Extension)]
    graphs = list(_with_subgraphs(graph))
    roots = [root for one in graphs for root in _schemas(one)]
    modules = {name for one in graphs for name in _modules(one)}
    allow = AllowList.of(
        *roots, modules=[*_imported(_LANGUAGE_MODULES), *sorted(modules)], extra=classes
    )
    return Codec(allow, extensions=[_SEND, *extensions], max_bytes=max_value_size)


def language_codec() -> Codec:
    """The codec for LangGraph's own values, where there is no graph."""
    allow = AllowList.of(modules=sorted(_imported(_LANGUAGE_MODULES)))
    return Codec(allow, extensions=[_SEND])


_SEND: Extension[Send] = Extension(
    type=Send,
    name="langgraph.Send",
    encode=lambda send: [send.node, send.arg, getattr(send, "timeout", None)],
    decode=lambda parts: _send(*parts),
)


def _send(node: str, arg: Any, timeout: Any) -> Send:
    send = Send(node, arg)
    if timeout is not None:
        send.timeout = timeout
    return send


def _imported(prefixes: Iterable[str]) -> Iterator[str]:
    wanted = tuple(prefixes)
    inside = tuple(f"{prefix}." for prefix in wanted)
    for name in list(sys.modules):
        if name in wanted or name.startswith(inside):
            yield name


def _with_subgraphs(graph: Pregel[Any, Any, Any, Any]) -> Iterator[Pregel[Any, Any, Any, Any]]:
    yield graph
    inner: Any
    for _, inner in cast(Any, graph).get_subgraphs(recurse=True):
        if isinstance(inner, Pregel):
            yield inner


def _schemas(graph: Any) -> Iterator[Any]:
    builder: Any = getattr(graph, "builder", None)
    for name in ("state_schema", "input_schema", "output_schema", "context_schema"):
        # Of a Pregel these are properties that build pydantic models; its attributes will do.
        attributes = cast(dict[str, Any], vars(graph))
        for schema in (getattr(builder, name, None), attributes.get(name)):
            if schema is not None:
                yield schema
    for schema in getattr(builder, "schemas", None) or ():
        yield schema
    nodes: dict[str, Any] = getattr(builder, "nodes", None) or {}
    for node in nodes.values():
        schema = getattr(node, "input_schema", None)
        if schema is not None:
            yield schema
    for channel in graph.channels.values():
        kind = getattr(channel, "typ", None)
        if kind is not None:
            yield kind


def _modules(graph: Any) -> Iterator[str]:
    """Modules that the functions of a graph are written in, which are the user's own."""
    for node in graph.nodes.values():
        for runnable in _runnables(node):
            for function in (getattr(runnable, "func", None), getattr(runnable, "afunc", None)):
                name = _module_of(function)
                if name is not None:
                    yield name
    builder = getattr(graph, "builder", None)
    for schema in getattr(builder, "schemas", None) or ():
        name = _module_of(schema)
        if name is not None:
            yield name


def _module_of(function: Any) -> str | None:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    name = getattr(function, "__module__", None)
    if not isinstance(name, str) or name.split(".")[0] in ("langgraph", "langchain_core", "typing"):
        return None
    return name


def _runnables(node: Any) -> Iterator[Any]:
    bound = getattr(node, "bound", None)
    yield from (bound, *getattr(bound, "steps", ()), *getattr(node, "writers", ()))
