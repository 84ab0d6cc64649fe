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


def _plain_kind(cls: Any) -> Kind:
    attributes = Attributes(cls)

    def give(parts: list[Any]) -> object:
        instance: Any = object.__new__(cls)
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

# What is called on the base type, as the subclass may have a method of that name.
_list: Any = list
_tuple: Any = tuple
_dict: Any = dict
_set: Any = set
_frozenset: Any = frozenset
_deque: Any = collections.deque
_ordered: Any = collections.OrderedDict


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


def _items(base: Any, plain: Callable[[Any], Any]) -> _Take:
    def take(instance: Any) -> Any:
        return plain(base.__iter__(instance))

    return take


def _take_dict(instance: Any) -> dict[Any, Any]:
    return dict(_dict.items(instance))


def _take_ordered(instance: Any) -> dict[Any, Any]:
    return dict(_ordered.items(instance))


def _fill_ordered(instance: Any, value: dict[Any, Any]) -> None:
    # OrderedDict.update would call a __setitem__ of the class.
    for key, item in value.items():
        _ordered.__setitem__(instance, key, item)


def _take_deque(instance: Any) -> list[Any]:
    return [list(_deque.__iter__(instance)), instance.maxlen]


def _fill_deque(instance: Any, value: list[Any]) -> None:
    items, maxlen = value
    _deque.__init__(instance, expect(list, items), maxlen)


def _take_defaultdict(instance: Any) -> list[Any]:
    return [_take_dict(instance), instance.default_factory]


def _fill_defaultdict(instance: Any, value: list[Any]) -> None:
    items, factory = value
    if factory is not None and not isinstance(factory, type):
        raise Malformed("the default_factory of a defaultdict is not a class")
    instance.default_factory = factory
    _dict.update(instance, expect(dict, items))


def _take_bytearray(instance: Any) -> bytes:
    return bytes(memoryview(instance))


def _take_datetime(instance: dt.datetime) -> dt.datetime:
    return _make_datetime(dt.datetime, instance)


def _make_datetime(cls: Any, value: dt.datetime) -> Any:
    *parts, fold = datetime_parts(value)
    new: Any = dt.datetime.__new__
    return new(cls, *parts, fold=fold)


def _take_date(instance: dt.date) -> dt.date:
    return _make_date(dt.date, instance)


def _make_date(cls: Any, value: dt.date) -> Any:
    return dt.date.__new__(cls, value.year, value.month, value.day)


def _take_time(instance: dt.time) -> dt.time:
    return _make_time(dt.time, instance)


def _make_time(cls: Any, value: dt.time) -> Any:
    names = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
    return dt.time.__new__(cls, **{name: getattr(value, name) for name in names})


def _take_timedelta(instance: dt.timedelta) -> dt.timedelta:
    return _make_timedelta(dt.timedelta, instance)


def _make_timedelta(cls: Any, value: dt.timedelta) -> Any:
    return dt.timedelta.__new__(cls, value.days, value.seconds, value.microseconds)


_BUILTINS: Mapping[type, tuple[type, _Take, _Make]] = {
    int: (int, int.__index__, _scalar(int)),
    float: (float, float.__float__, _scalar(float)),
    complex: (complex, complex.__complex__, _scalar(complex)),
    str: (str, str.__str__, _scalar(str)),
    bytes: (bytes, bytes.__bytes__, _scalar(bytes)),
    bytearray: (bytes, _take_bytearray, _filled(bytearray, bytearray.extend)),
    tuple: (list, _items(_tuple, list), _scalar(tuple)),
    list: (list, _items(_list, list), _filled(list, _list.extend)),
    dict: (dict, _take_dict, _filled(dict, _dict.update)),
    set: (frozenset, _items(_set, frozenset), _filled(set, _set.update)),
    frozenset: (frozenset, _items(_frozenset, frozenset), _scalar(frozenset)),
    collections.OrderedDict: (dict, _take_ordered, _filled(_ordered, _fill_ordered)),
    collections.defaultdict: (
        list,
        _take_defaultdict,
        _filled(collections.defaultdict, _fill_defaultdict),
    ),
    collections.deque: (list, _take_deque, _filled(_deque, _fill_deque)),
    decimal.Decimal: (decimal.Decimal, decimal.Decimal, _scalar(decimal.Decimal)),
    dt.datetime: (dt.datetime, _take_datetime, _make_datetime),
    dt.date: (dt.date, _take_date, _make_date),
    dt.time: (dt.time, _take_time, _make_time),
    dt.timedelta: (dt.timedelta, _take_timedelta, _make_timedelta),
}
