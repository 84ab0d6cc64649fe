"""What a class is called in a record, how that name is looked up, and what kind of class it is.

A look-up only reads dictionaries of modules that are already imported: nothing is imported, and no
code of a module runs.
"""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import sys
import types
from collections.abc import Mapping
from typing import Any

BUILTIN_BASES: frozenset[type] = frozenset(
    (
        int,
        float,
        complex,
        str,
        bytes,
        bytearray,
        list,
        tuple,
        dict,
        set,
        frozenset,
        collections.OrderedDict,
        collections.defaultdict,
        collections.deque,
        decimal.Decimal,
        dt.date,
        dt.datetime,
        dt.time,
        dt.timedelta,
    )
)
"""The types whose subclasses can be rebuilt."""

_HEAP_TYPE = 1 << 9
_NATIVE = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def name_of(cls: type) -> str:
    """The name a record uses, as ``module:Outer.Inner``."""
    return f"{cls.__module__}:{cls.__qualname__}"


def find_class(name: str) -> type | None:
    """The class an already imported module holds under ``name``, or None."""
    module_name, _, qualname = name.partition(":")
    found: object = sys.modules.get(module_name)
    # The name of a parametrised pydantic model is one attribute: Box[a.b.Item].
    for part in [qualname] if "[" in qualname else qualname.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found if isinstance(found, type) else None


def builtin_base(cls: type) -> type:
    """The type written in C that decides how ``cls`` is made; ``object`` for plain classes."""
    return next(base for base in cls.__mro__ if _is_native(base))


def _is_native(cls: type) -> bool:
    if not cls.__flags__ & _HEAP_TYPE:
        return True
    # C code can make heap types too, but not without methods of its own.
    return any(
        isinstance(member, _NATIVE)
        and (
            getattr(member, "__objclass__", None) is cls or getattr(member, "__self__", None) is cls
        )
        for member in vars(cls).values()
    )


def is_pydantic(cls: type) -> bool:
    """Whether ``cls`` is a pydantic v2 model."""
    return _is_subclass(cls, "pydantic.main") and hasattr(cls, "__pydantic_core_schema__")


def model_fields(cls: Any) -> Mapping[str, Any]:
    """The fields of the pydantic v2 model ``cls``, by name."""
    try:
        return cls.__pydantic_fields__
    except AttributeError:  # before pydantic 2.10
        return cls.model_fields


def is_pydantic_v1(cls: type) -> bool:
    """Whether ``cls`` is a pydantic v1 model."""
    return _is_subclass(cls, "pydantic.v1.main")


def is_data_class(cls: Any) -> bool:
    """Whether ``cls`` is made to hold data: a dataclass, an attrs class, a pydantic model, an Enum,
    an exception, or a subclass of a built-in type such as a NamedTuple."""
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, enum.Enum | BaseException)
        or "__attrs_attrs__" in vars(cls)
        or builtin_base(cls) in BUILTIN_BASES
        or is_pydantic(cls)
        or is_pydantic_v1(cls)
    )


def _is_subclass(cls: type, module_name: str) -> bool:
    base = vars(sys.modules[module_name]).get("BaseModel") if module_name in sys.modules else None
    return isinstance(base, type) and cls is not base and issubclass(cls, base)
