"""Where inside a value something is, for messages: ``state['items'][3].frame``."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from dapr_runners.state._attributes import slots_of

_PLAIN = (dict, list)
_FAR = 300
"""How deep a cycle is looked for: deeper than a value may be, and short of Python's own limit."""
_SCALARS = (str, bytes, bytearray, memoryview, int, float, range)


def path_to(root: object, chain: Sequence[object], where: str) -> str:
    """``where`` with the steps from ``root`` through each object of ``chain`` to the last. A step
    that cannot be found, as the object was made on the way, is "…"."""
    for target in chain:
        step = _step(root, target, set())
        where += "…" if step is None else step
        root = target
    return where


def cycle_in(root: object, where: str) -> str:
    """The path at which ``root`` comes to contain itself; ``where`` if it does not."""
    return _cycle(root, where, set(), set()) or where


def _step(holder: object, target: object, seen: set[int]) -> str | None:
    """How to get from ``holder`` to ``target`` inside it, through plain lists and dicts."""
    if holder is target:
        return ""
    seen.add(id(holder))
    for label, child in _children(holder):
        if child is target:
            return label
        if type(child) in _PLAIN and id(child) not in seen:
            below = _step(child, target, seen)
            if below is not None:
                return label + below
    return None


def _cycle(value: object, where: str, above: set[int], done: set[int]) -> str | None:
    if id(value) in above:
        return where
    if isinstance(value, _SCALARS) or id(value) in done or len(above) > _FAR:
        return None
    above.add(id(value))
    for label, child in _children(value):
        found = _cycle(child, where + label, above, done)
        if found is not None:
            return found
    above.discard(id(value))
    done.add(id(value))
    return None


def _children(value: object) -> Iterator[tuple[str, object]]:
    """What ``value`` holds directly, with how to get there."""
    yield from _items(value)
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas"):
        return  # their attributes are not what their users see
    attributes: dict[str, object] = {}
    for holder in ("__dict__", "__pydantic_extra__", "__pydantic_private__"):
        held: Any = getattr(value, holder, None)
        if type(held) is dict:
            attributes |= held
    for name, slot in slots_of(type(value)).items():
        with contextlib.suppress(AttributeError):
            attributes.setdefault(name, slot.__get__(value))
    for name, attribute in attributes.items():
        yield f".{name}", attribute


def _items(value: Any) -> Iterator[tuple[str, object]]:
    if _is_a(value, Mapping):
        for place, (key, item) in enumerate(value.items()):
            yield f"[{_short(key)}]", item
            yield f".keys()[{place}]", key
    elif _is_a(value, tuple) and hasattr(value, "_fields"):
        for name, item in zip(value._fields, value, strict=False):
            yield f".{name}", item
    elif _is_a(value, BaseException):
        for index, item in enumerate(value.args):
            yield f".args[{index}]", item
    elif _is_a(value, Set):
        for item in value:
            yield f"{{{type(item).__name__}}}", item
    elif type(value).__name__ == "ndarray":
        for place in itertools.product(*map(range, value.shape)):
            yield f"[{', '.join(map(str, place))}]", value[place]
    elif _is_a(value, Sequence) and not _is_a(value, _SCALARS):
        for index, item in enumerate(value):
            yield f"[{index}]", item


def _is_a(value: object, classes: Any) -> bool:
    """isinstance, which a type checker would narrow ``value`` by."""
    return isinstance(value, classes)


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:37]}..."
