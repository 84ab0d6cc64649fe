"""What a step asks for, in a form that can be compared with what was recorded.

A request is a head and parts (the messages of an LLM call). Requests of one strand mostly go on
from each other, so a record holds only what is new, and unchanged messages are not digested again.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

_UNSTABLE = ("id", "tool_call_id", "call_id")
"""Keys left out: some providers' classes make them anew in each process."""


_ADDRESS = re.compile(" at 0x[0-9a-fA-F]+")
"""Where an object lies in memory: some prompts of CrewAI's hold the repr of a tool."""


@dataclass(slots=True)
class _Part:
    """A message, as text, with a digest of it and all before it. A deep ``copy`` of it, if it is
    plain data."""

    copy: Any
    text: str
    chain: bytes


@dataclass(slots=True)
class Request:
    """What a step asks for. ``kept`` of its messages are those of the last request before it."""

    head: str
    parts: list[_Part]
    kept: int

    @property
    def digest(self) -> str:
        last = self.parts[-1].chain if self.parts else b""
        return hashlib.blake2b(self.head.encode() + b"\0" + last, digest_size=12).hexdigest()

    def news(self) -> dict[str, Any]:
        """What a record holds of it."""
        texts = [part.text for part in self.parts[self.kept :]]
        return {"head": self.head, "kept": self.kept, "parts": texts}

    def difference(self, recorded: Mapping[str, Any], before: "Request | None") -> str:
        """How this differs from a ``recorded`` request, which came after ``before``."""
        old = [] if before is None else [part.text for part in before.parts]
        then = [recorded["head"], *old[: recorded["kept"]], *recorded["parts"]]
        now = [self.head, *(part.text for part in self.parts)]
        return "\n".join(
            difflib.unified_diff(_lines(then), _lines(now), "recorded", "now", n=1, lineterm="")
        )


def request(head: Any, messages: Sequence[Any], before: Request | None = None) -> Request:
    """The request with ``head`` and ``messages``; ``before`` is the last one of its strand."""
    old = [] if before is None else before.parts
    kept = _unchanged(messages, old)
    parts = old[:kept]
    chain = parts[-1].chain if parts else b""
    for message in messages[kept:]:
        text = canonical(message)
        chain = hashlib.blake2b(chain + text.encode("utf-8", "surrogatepass")).digest()
        if kept == len(parts) < len(old) and old[kept].chain == chain:
            kept += 1
        parts.append(_part(message, text, chain))
    return Request(canonical(head), parts, kept)


def _part(message: Any, text: str, chain: bytes) -> _Part:
    try:
        return _Part(_copy(message), text, chain)
    except TypeError:
        return _Part(None, text, chain)


def _copy(value: Any) -> Any:
    """A deep copy of plain data; raises TypeError for anything else."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if type(value) is dict:
        items = cast(dict[Any, Any], value).items()
        return {_copy(key): _copy(each) for key, each in items}
    if type(value) is list:
        return [_copy(each) for each in cast(list[Any], value)]
    raise TypeError(f"a {type(value).__name__} is not plain")


def _unchanged(messages: Sequence[Any], old: Sequence[_Part]) -> int:
    """How many of the first messages are seen at a glance to be the old ones."""
    number = 0
    for message, part in zip(messages, old, strict=False):
        if part.copy is None or message != part.copy:
            break
        number += 1
    return number


def canonical(value: Any) -> str:
    """``value`` as JSON in which equal values read equal, in every process."""
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _ADDRESS.sub(" at 0x", value) if " at 0x" in value else value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return {str(k): _plain(v) for k, v in items if k not in _UNSTABLE}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast(Iterable[Any], value)]
    if isinstance(value, (set, frozenset)):
        return sorted(canonical(item) for item in cast(Iterable[Any], value))
    if isinstance(value, bytes):
        return hashlib.blake2b(value, digest_size=12).hexdigest()
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        fields = cast(dict[str, Any], vars(value))
        return {"": type(value).__qualname__, **_plain(fields)}
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _lines(texts: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for text in texts:
        lines.extend(json.dumps(json.loads(text), indent=1, ensure_ascii=False).splitlines())
    return lines
