"""The data classes that type annotations name, however deep."""

import dataclasses
import enum
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from dapr_runners.state._classes import (
    is_data_class,
    is_pydantic,
    is_pydantic_v1,
    model_fields,
)

_LIBRARIES = sys.stdlib_module_names | {"attr", "attrs", "numpy", "pandas", "pydantic"}


def classes_in(roots: Iterable[object], *, subclasses: bool = False) -> frozenset[type]:
    """The data classes found in ``roots`` and in the annotations of what is found: type hints,
    classes, functions. With ``subclasses``, those of the found classes too, as an annotation
    admits them."""
    found: set[type] = set()
    seen: set[int] = set()
    pending = list(roots)
    kept = list(pending)  # ids are only unique among live objects
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        parts = list(_parts(item))
        if isinstance(item, type) and typing.get_origin(item) is None and is_data_class(item):
            found.add(item)
            # A base class of a library is no statement about what a program stores.
            if subclasses and item.__module__.partition(".")[0] not in _LIBRARIES:
                parts += type.__subclasses__(item)
        kept += parts
        pending += parts
    return frozenset(found)


def _parts(item: Any) -> Iterator[object]:
    """What ``item`` is made of, one level down."""
    origin = typing.get_origin(item)
    if origin is typing.Literal:
        yield from map(type, typing.get_args(item))
    elif origin is typing.Annotated:
        yield item.__origin__
    elif origin is not None:
        yield origin
        yield from typing.get_args(item)
    elif isinstance(item, list | tuple):  # the arguments of a Callable
        yield from typing.cast("Iterable[object]", item)
    elif isinstance(item, typing.TypeVar):
        yield item.__bound__
        yield from item.__constraints__
    elif isinstance(item, type):
        yield from _parts_of_class(item)
    elif isinstance(item, types.FunctionType | types.MethodType):
        yield from _hints(item)
    else:
        yield getattr(item, "__supertype__", None)  # NewType
        yield getattr(item, "__value__", None)  # TypeAliasType


def _parts_of_class(cls: Any) -> Iterator[object]:
    if issubclass(cls, enum.Enum) or cls.__module__ in ("builtins", "typing"):
        return
    for base in getattr(cls, "__orig_bases__", ()):
        yield from typing.get_args(base)
    if is_pydantic(cls):
        yield from (field.annotation for field in model_fields(cls).values())
        yield from cls.__pydantic_generic_metadata__["args"]
    elif is_pydantic_v1(cls):
        for field in cls.__fields__.values():
            yield field.outer_type_
            yield field.type_
    if is_data_class(cls) or typing.is_typeddict(cls) or dataclasses.is_dataclass(cls):
        yield from _hints(cls)


def _hints(item: Any) -> Iterator[object]:
    """The evaluated annotations of a class or function; those that do not evaluate are left out."""
    try:
        yield from typing.get_type_hints(item, include_extras=True).values()
        return
    except Exception:
        # One name that only exists under TYPE_CHECKING must not hide the others.
        owners = item.__mro__ if isinstance(item, type) else [item]
    for owner in owners:
        scope = vars(sys.modules.get(owner.__module__, types))
        try:
            own: dict[str, Any] = owner.__annotations__
        except Exception:  # nosec B112 # what does not evaluate is left out, see above
            continue  # Python evaluates them on this access from 3.14 on
        for name, hint in own.items():
            single = types.SimpleNamespace(__annotations__={name: hint})
            try:
                yield from typing.get_type_hints(
                    single, globalns=scope, localns=dict(vars(owner)), include_extras=True
                ).values()
            except Exception:  # nosec B112 # what does not evaluate is left out, see above
                continue
