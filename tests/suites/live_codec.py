"""A codec that takes everything: what the strict one refuses is handed over live, and counted.

The suite measures how a graph is split into activities, not what can be stored. Its tests put
classes of their own functions, locks and mocks into states, which no other process could rebuild.
"""

import itertools
from collections import Counter
from typing import Any

from dapr_runners.state import Codec, Extension, UnstorableValueError
from dapr_runners.state._classes import find_class, name_of

_WHOLE = b"live:"


class LiveTable:
    """Objects that were handed over live, by token; and how many values went which way."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self.counts: Counter[str] = Counter()

    def put(self, value: Any) -> int:
        token = next(self._numbers)
        self._objects[token] = value
        return token

    def get(self, token: int) -> Any:
        return self._objects[token]

    def clear(self) -> None:
        self._objects.clear()


class LiveCodec(Codec):
    """``strict``, but for what it refuses."""

    def __init__(self, strict: Codec, table: LiveTable) -> None:
        self._table = table
        handed_over: Extension[Any] = Extension(
            type=object, name="live", encode=table.put, decode=table.get, subclasses=True
        )
        super().__init__(strict.allow, extensions=[*strict._extensions, handed_over])
        self._extensions = strict._extensions  # it comes last: only for what is refused
        self._hand_over = self._encoders.pop(object)

    def encode(self, value: object, where: str = "value") -> bytes:
        self._table.counts["values"] += 1
        before = self._table.counts["objects live"]
        try:
            data = super().encode(value, where)
        except UnstorableValueError:
            self._table.counts["objects live"] += 1
            data = _WHOLE + str(self._table.put(value)).encode()
        if self._table.counts["objects live"] != before:
            self._table.counts["values live"] += 1
        return data

    def decode(self, data: bytes, key: str = "value") -> Any:
        if data.startswith(_WHOLE):
            return self._table.get(int(data.removeprefix(_WHOLE)))
        return super().decode(data, key)

    def _find_encoder(self, cls: type) -> Any:
        if issubclass(cls, BaseException) and find_class(name_of(cls)) is not cls:
            return self._refuse
        return super()._find_encoder(cls)

    def _refuse(self, value: object, writer: Any) -> Any:
        self._table.counts["objects live"] += 1
        self._table.counts[f"live {type(value).__name__}"] += 1
        return self._hand_over(value, writer)

    def _encode_type(self, value: type, writer: Any) -> Any:
        if not self.allow.allows(value) and self._find_exception(name_of(value)) is not value:
            return self._refuse(value, writer)
        return super()._encode_type(value, writer)
