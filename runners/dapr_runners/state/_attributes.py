"""The attributes of an instance, read and set without running any code of its class."""

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any, cast

from dapr_runners.state._wire import Malformed, expect

_DERIVED = frozenset(("__orig_class__",))
"""Attributes that typing sets on instances, and that cannot be told from their absence."""


class Attributes:
    """The attributes of instances of ``cls``: what ``__dict__`` holds, and slots.

    Values that ``functools.cached_property`` keeps are left out: they are computed again.
    """

    def __init__(self, cls: type) -> None:
        self._slots = slots_of(cls)
        self._skipped = _DERIVED | cached_properties(cls)
        self._defaults = _defaults(cls, bool(self._slots))

    def take(self, instance: Any) -> list[Any]:
        """What :meth:`give` needs: a dict or None, and a dict of the filled slots or None."""
        attributes = getattr(instance, "__dict__", None)
        if attributes and not self._skipped.isdisjoint(attributes):
            attributes = {k: v for k, v in attributes.items() if k not in self._skipped}
        slots: dict[str, Any] = {}
        for name, slot in self._slots.items():
            try:
                slots[name] = slot.__get__(instance)
            except AttributeError:
                continue  # the slot is empty
        return [attributes, slots or None]

    def give(self, instance: Any, attributes: object, slots: object) -> None:
        """Set on ``instance`` what was taken, and the defaults of fields the class got since."""
        if attributes is not None:
            cast("dict[str, Any]", instance.__dict__).update(expect(dict, attributes))
        filled = {} if slots is None else cast("dict[str, Any]", expect(dict, slots))
        for name, value in filled.items():
            if name not in self._slots:
                raise Malformed(f"{type(instance).__qualname__} has no slot {name!r} any more")
            self._slots[name].__set__(instance, value)
        for name, default in self._defaults.items():
            if name in self._slots:
                if name not in filled:
                    self._slots[name].__set__(instance, default())
            elif name not in instance.__dict__:
                instance.__dict__[name] = default()


def slots_of(cls: type) -> Mapping[str, types.MemberDescriptorType]:
    """The slots that ``cls`` and its bases written in Python define, by name."""
    slots: dict[str, types.MemberDescriptorType] = {}
    for base in cls.__mro__:
        for name, member in vars(base).items():
            if isinstance(member, types.MemberDescriptorType) and "__slots__" in vars(base):
                slots.setdefault(name, member)
    return slots


def cached_properties(cls: type) -> frozenset[str]:
    """The names of attributes of ``cls`` that ``functools.cached_property`` computes."""
    return frozenset(
        name
        for base in cls.__mro__
        for name, member in vars(base).items()
        if isinstance(member, functools.cached_property)
    )


def _defaults(cls: type, slots: bool) -> Mapping[str, Callable[[], object]]:
    """How to fill the fields of a dataclass that a record written before they existed lacks. A
    plain default needs nothing: the class attribute serves, unless there are slots."""
    defaults: dict[str, Callable[[], object]] = {}
    for field in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory
        elif slots and field.default is not dataclasses.MISSING:
            defaults[field.name] = functools.partial(_same, field.default)
    return defaults


def _same(value: object) -> object:
    return value
