"""How instances of classes are packed, and rebuilt without running their constructors.

Only the ``__new__`` of built-in types is called, so no code of the class runs.
"""

import collections
import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from typing import Any

from dapr_runners.state._attributes import Attributes
from dapr_runners.state._classes import builtin_base, is_pydantic
from dapr_runners.state._pydantic import model_kind
from dapr_runners.state._times import datetime_parts
from dapr_runners.state._wire import Kind, Malformed, expect


def kind_of(cls: type) -> Kind | None:
    """How instances of ``cls`` are stored; None if its layout is that of an unknown C type."""
    if is_pydantic(cls):
        return model_kind(cls)
    base = builtin_base(cls)
    if base is object:
        return None if cls is object else _plain_kind(cls)
    return _subclass_kind(cls, *_BUILTINS[base]) if base in _BUILTINS else None


def _plain_kind(cls: type) -> Kind:
    attributes = Attributes(cls)

    def give(parts: list[Any]) -> object:
        instance = object.__new__(cls)
        attributes.give(instance, *parts)
        return instance

    return Kind(attributes.take, give)


def _subclass_kind(cls: type, value_type: type, take_value: "_Take", make: "_Make") -> Kind:
    attributes = Attributes(cls)

    def take(instance: Any) -> list[Any]:
        extra = attributes.take(instance)
        return [take_value(instance), *extra] if any(extra) else [take_value(instance)]

    def give(parts: list[Any]) -> object:
        instance = make(cls, expect(value_type, parts[0]))
        attributes.give(instance, *(parts[1:] or (None, None)))
        return instance

    return Kind(take, give)


# -- subclasses of built-in types: the plain value, and an instance from it

_Take = Callable[[Any], Any]
_Make = Callable[[Any, Any], Any]


def _scalar(base: Any) -> _Make:
    def make(cls: type, value: Any) -> Any:
        return base.__new__(cls, value)

    return make


def _filled(base: Any, fill: Callable[[Any, Any], object]) -> _Make:
    def make(cls: type, value: Any) -> Any:
        instance = base.__new__(cls)
        fill(instance, value)
        return instance

    return make


def _fill_ordered(instance: Any, value: dict[Any, Any]) -> None:
    # OrderedDict.update would call a __setitem__ of the class.
    for key, item in value.items():
        collections.OrderedDict.__setitem__(instance, key, item)


def _take_deque(instance: "collections.deque[Any]") -> list[Any]:
    return [list(collections.deque.__iter__(instance)), instance.maxlen]


def _fill_deque(instance: Any, value: list[Any]) -> None:
    items, maxlen = value
    collections.deque.__init__(instance, expect(list, items), maxlen)


def _take_defaultdict(instance: Any) -> list[Any]:
    return [dict(dict.items(instance)), instance.default_factory]


def _fill_defaultdict(instance: Any, value: list[Any]) -> None:
    items, factory = value
    if factory is not None and not isinstance(factory, type):
        raise Malformed("the default_factory of a defaultdict is not a class")
    instance.default_factory = factory
    dict.update(instance, expect(dict, items))


def _make_datetime(cls: type, value: dt.datetime) -> Any:
    *parts, fold = datetime_parts(value)
    return dt.datetime.__new__(cls, *parts, fold=fold)  # pyright: ignore


def _take_datetime(instance: dt.datetime) -> dt.datetime:
    *parts, fold = datetime_parts(instance)
    return dt.datetime(*parts, fold=fold)  # pyright: ignore


def _take_time(instance: dt.time) -> dt.time:
    return dt.time.replace(dt.time.min, **_time_parts(instance))


def _make_time(cls: type, value: dt.time) -> Any:
    return dt.time.__new__(cls, **_time_parts(value))


def _time_parts(value: dt.time) -> dict[str, Any]:
    names = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
    return {name: getattr(value, name) for name in names}


_BUILTINS: Mapping[type, tuple[type, _Take, _Make]] = {
    int: (int, int.__index__, _scalar(int)),
    float: (float, float.__float__, _scalar(float)),
    complex: (complex, complex.__complex__, _scalar(complex)),
    str: (str, str.__str__, _scalar(str)),
    bytes: (bytes, bytes.__bytes__, _scalar(bytes)),
    bytearray: (bytes, lambda v: bytes(memoryview(v)), _filled(bytearray, bytearray.extend)),
    tuple: (list, lambda v: list(tuple.__iter__(v)), _scalar(tuple)),
    list: (list, lambda v: list(list.__iter__(v)), _filled(list, list.extend)),
    dict: (dict, lambda v: dict(dict.items(v)), _filled(dict, dict.update)),
    set: (frozenset, lambda v: frozenset(set.__iter__(v)), _filled(set, set.update)),
    frozenset: (
        frozenset,
        lambda v: frozenset(frozenset.__iter__(v)),
        _scalar(frozenset),
    ),
    collections.OrderedDict: (
        dict,
        lambda v: dict(collections.OrderedDict.items(v)),
        _filled(collections.OrderedDict, _fill_ordered),
    ),
    collections.defaultdict: (
        list,
        _take_defaultdict,
        _filled(collections.defaultdict, _fill_defaultdict),
    ),
    collections.deque: (list, _take_deque, _filled(collections.deque, _fill_deque)),
    decimal.Decimal: (decimal.Decimal, decimal.Decimal, _scalar(decimal.Decimal)),
    dt.datetime: (dt.datetime, _take_datetime, _make_datetime),
    dt.date: (
        dt.date,
        lambda v: dt.date(v.year, v.month, v.day),
        lambda cls, v: dt.date.__new__(cls, v.year, v.month, v.day),
    ),
    dt.time: (dt.time, _take_time, _make_time),
    dt.timedelta: (
        dt.timedelta,
        lambda v: dt.timedelta(v.days, v.seconds, v.microseconds),
        lambda cls, v: dt.timedelta.__new__(cls, v.days, v.seconds, v.microseconds),
    ),
}
