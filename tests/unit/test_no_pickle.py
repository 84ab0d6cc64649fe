"""Nothing in the package runs code that data names: no pickle, no eval, no marshal."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import dapr_runners
from dapr_runners.langgraph import DaprSaver
from dapr_runners.state import StateStore

ROOT = Path(dapr_runners.__file__).parent
MODULES = frozenset(
    ("cloudpickle", "code", "dill", "jsonpickle", "marshal", "pickle", "runpy", "shelve", "_pickle")
)
CALLS = frozenset(("eval", "exec", "compile", "__import__", "FunctionType", "CodeType"))
ALLOWED = {
    # Another run of LangGraph's own stream(), with two of its globals rebound.
    ("langgraph/_live.py", "FunctionType"),
}


def found_in(text: str) -> Iterator[str]:
    """What a source has of what it must not have."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (n.name for n in names if n.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), level=0) if module.partition(".")[0] in MODULES:
                yield module
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(attr=name, value=of)) if name in CALLS:
                if not (name == "compile" and isinstance(of, (ast.Name, ast.Attribute))):
                    yield name  # re.compile and the like are no compile()
            case ast.Call(keywords=keywords):
                yield from (
                    "pickle_fallback"
                    for keyword in keywords
                    if keyword.arg == "pickle_fallback"
                    and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
                )
            case ast.Constant(value="pickle" | "marshal" | "dill"):
                yield "the name of a pickler"
            case _:
                pass


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "import os, marshal as m",
        "from pickle import loads",
        "from cloudpickle.compat import x",
        "eval(x)",
        "exec(x, {})",
        "compile(x, 'f', 'exec')",
        "builtins.eval(x)",
        "__import__(x)",
        "types.FunctionType(code, {})",
        "importlib.import_module('pickle')",
        "JsonPlusSerializer(pickle_fallback=True)",
        "JsonPlusSerializer(pickle_fallback=x)",
    ],
)
def test_what_is_looked_for_is_found(text: str) -> None:
    assert list(found_in(text))


def test_no_source_has_it() -> None:
    sources = sorted(ROOT.rglob("*.py"))
    assert len(sources) > 200
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in sources
        for name in found_in(path.read_text("utf-8"))
    }
    assert found == ALLOWED


def test_the_savers_serializer_has_no_pickle_to_fall_back_on() -> None:
    store = StateStore(address="127.0.0.1:1")
    serde = DaprSaver(store).serde
    store.close()
    assert isinstance(serde, JsonPlusSerializer) and not serde.pickle_fallback
