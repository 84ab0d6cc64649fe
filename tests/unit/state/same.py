"""Whether two values are the same, types and all."""

import dataclasses
import enum
import re
from collections import OrderedDict, deque
from typing import Any

import numpy as np


def same(a: Any, b: Any) -> bool:
    """Whether ``b`` is what ``a`` is: of the same type, and so is all they hold."""
    return _different(a, b, "value") is None


def assert_same(a: Any, b: Any) -> None:
    """Fail with the path to the first difference."""
    difference = _different(a, b, "value")
    assert difference is None, difference


def _different(a: Any, b: Any, at: str) -> str | None:
    if type(a) is not type(b):
        return f"{at}: {type(a)} is not {type(b)}"
    if isinstance(a, (enum.Enum, type)) or a is None:
        return None if a is b else f"{at}: {a!r} is not {b!r}"
    if isinstance(a, float | complex) and repr(a) != repr(b):
        return f"{at}: {a!r} != {b!r}"
    if isinstance(a, dict):
        items = OrderedDict.items if isinstance(a, OrderedDict) else dict.items
        pairs = [list(items(a)), list(items(b))]
        return _sequences(*pairs, at) or _attributes(a, b, at)
    if isinstance(a, list | tuple | deque):
        if isinstance(a, deque) and a.maxlen != b.maxlen:
            return f"{at}: maxlen {a.maxlen} != {b.maxlen}"
        return _sequences(list(a), list(b), at) or _attributes(a, b, at)
    if isinstance(a, set | frozenset):
        unmatched = list(b)
        for member in a:
            found = [other for other in unmatched if same(member, other)]
            if not found:
                return f"{at}: {member!r} is not in {b!r}"
            unmatched = [other for other in unmatched if other is not found[0]]
        return _attributes(a, b, at) if not unmatched else f"{at}: {unmatched!r} is not in {a!r}"
    if isinstance(a, np.ndarray):
        alike = a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        return None if alike else f"{at}: {a!r} != {b!r}"
    if isinstance(a, slice):
        return _sequences([a.start, a.stop, a.step], [b.start, b.stop, b.step], at)
    if isinstance(a, BaseException):
        return (
            _different(a.args, b.args, f"{at}.args")
            or _different(a.__cause__, b.__cause__, f"{at}.__cause__")
            or _attributes(a, b, at)
        )
    if isinstance(a, float | complex) and a != a:
        return _attributes(a, b, at)
    if isinstance(a, str | bytes | bytearray | int | float | complex | re.Pattern):
        return _attributes(a, b, at) if a == b else f"{at}: not equal"
    attributes = _attributes(a, b, at)
    if attributes:
        return attributes
    if getattr(a, "fold", 0) != getattr(b, "fold", 0):
        return f"{at}: fold"
    # What has attributes was compared by them: nan within them is not equal to itself.
    compares = type(a).__eq__ is not object.__eq__ and not hasattr(a, "__dict__")
    compares = compares and not dataclasses.is_dataclass(a)
    return f"{at}: {a!r} != {b!r}" if compares and a != b and repr(a) != repr(b) else None


def _sequences(a: list[Any], b: list[Any], at: str) -> str | None:
    if len(a) != len(b):
        return f"{at}: {len(a)} items, not {len(b)}"
    pairs = enumerate(zip(a, b, strict=True))
    return next((d for i, (x, y) in pairs if (d := _different(x, y, f"{at}[{i}]"))), None)


def _attributes(a: Any, b: Any, at: str) -> str | None:
    holders = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
    for name in ("__dict__", *holders):
        x, y = getattr(a, name, None), getattr(b, name, None)
        if (difference := _different(x, y, f"{at}.{name}")) is not None:
            return difference
    for cls in type(a).__mro__:
        for name in vars(cls).get("__slots__", ()):
            if name in ("__dict__", "__weakref__", *holders) or name.startswith("_"):
                continue
            x, y = getattr(a, name, Ellipsis), getattr(b, name, Ellipsis)
            if (difference := _different(x, y, f"{at}.{name}")) is not None:
                return difference
    return None
