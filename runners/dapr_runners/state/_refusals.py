"""Why a value is refused, and what its owner can do about it."""

import functools
import types
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from dapr_runners.state._classes import find_class, name_of
from dapr_runners.state._instances import kind_of
from dapr_runners.state._wire import Unstorable

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    functools.partial,
)
_COMPUTATIONS = (Iterator, types.CoroutineType, types.AsyncGeneratorType)
_PROCESS_BOUND = frozenset(
    (
        *("_asyncio", "_io", "_socket", "_thread", "asyncio", "concurrent", "contextvars"),
        *("multiprocessing", "queue", "_queue", "selectors", "socket", "sqlite3", "ssl"),
        *("subprocess", "tempfile", "threading", "weakref"),
    )
)
"""Modules whose objects stand for something of the operating system or of the interpreter."""


def refusal(value: object) -> Unstorable:
    """What to raise for a ``value`` that no encoder takes."""
    reason, remedy = _explained(value)
    return Unstorable(value, reason, remedy)


def _explained(value: object) -> tuple[str, str]:
    if isinstance(value, type):
        return _unknown_class(
            value, "it is a class, and records only name classes that are allowed"
        )
    cls: Any = type(value)
    if isinstance(value, _FUNCTIONS):
        return (
            "it is code, and records hold data only",
            "Store its name or its arguments, and look the function up where it is used.",
        )
    if cls.__module__.partition(".")[0] in _PROCESS_BOUND:
        return (
            "it belongs to this process",
            "Keep it outside the state, and open or make it where it is used.",
        )
    if isinstance(value, _COMPUTATIONS):
        return ("it is a running computation", "Store its results, for example list(value).")
    if isinstance(value, KeysView | ValuesView | ItemsView):
        return ("it is a view of a dict", "Store list(view) instead.")
    if isinstance(value, types.ModuleType):
        return ("it is a module", "Store its name, and import it where it is used.")
    if cls is object:
        return (
            "it is only equal to itself, and would be another object when read back",
            "Use None, an Enum member or a string as the marker.",
        )
    return _unknown_class(cls, "its class is not one this runner may rebuild")


def _unknown_class(cls: type, reason: str) -> tuple[str, str]:
    local = "<locals>" in cls.__qualname__
    name = f"{cls.__module__}.{cls.__name__ if local else cls.__qualname__}"
    allow = f"pass allow_types=[{name}] to the runner"
    if cls.__module__.partition(".")[0] == "pandas":
        return (
            "the codec was made without pandas",
            "Pass extensions=pandas_extensions() to the codec.",
        )
    if any(name_of(base) == "numpy:ndarray" for base in cls.__mro__):
        return ("it is a subclass of numpy.ndarray", "Store numpy.asarray(value) instead.")
    if local:
        return (
            "its class is local to a function, so another process could not find it",
            f"Move {cls.__name__} to module level, then {allow}.",
        )
    if find_class(name_of(cls)) is not cls:
        return (
            "another process would not find its class under its name",
            f"Keep the class as {cls.__qualname__} in the module {cls.__module__}, then {allow}.",
        )
    if kind_of(cls) is None:
        return (
            "it is implemented in C, and its state cannot be seen",
            "Store the plain values it is made of, or give the codec an Extension for its type.",
        )
    return (reason, f"{allow[0].upper()}{allow[1:]}.")
