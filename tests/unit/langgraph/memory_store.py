"""A state store in memory, with the two ways ETags behave in Dapr's components, and with hooks."""

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dapr_runners.state import StoredValue


class Killed(BaseException):
    """The process ended here."""


def kill() -> None:
    raise Killed


class MemoryStore:
    """Does what ``StateStore`` does.

    ``redis`` has it forget a key's version when it is deleted, take a write with an ETag where
    there is nothing, and refuse to create only what was created before: as Dapr's Redis component.
    Otherwise each write has an ETag of its own, as in SQL components.

    ``interrupt(3, action)`` has ``action`` called once, before the third call from now on.
    """

    is_encrypted = False

    def __init__(self, *, redis: bool = False) -> None:
        self.redis = redis
        self.values: dict[str, tuple[bytes, str]] = {}
        self.created: set[str] = set()
        self.calls: list[str] = []
        self.interrupted = False
        self._interrupt: tuple[int, Callable[[], None]] | None = None
        self._etags = itertools.count(1)

    def clone(self) -> "MemoryStore":
        """Another store with the same content."""
        other = MemoryStore(redis=self.redis)
        other.values, other.created = dict(self.values), set(self.created)
        other._etags = itertools.count(len(self.calls) * 100)
        return other

    def interrupt(self, call: int, action: Callable[[], None]) -> None:
        """Have ``action`` called before the ``call``-th call from now, in it and thus once."""
        self.interrupted = False
        self._interrupt = (len(self.calls) + call, action)

    def _called(self, method: str) -> None:
        self.calls.append(method)
        if self._interrupt and len(self.calls) == self._interrupt[0]:
            self.interrupted = True
            self._interrupt[1]()

    def _write(self, key: str, value: bytes) -> None:
        assert value
        assert "||" not in key
        assert len(key) < 300
        old = self.values.get(key)
        etag = int(old[1]) + 1 if old else 1
        self.values[key] = (value, str(etag if self.redis else next(self._etags)))

    def read(self, key: str) -> StoredValue | None:
        self._called("read")
        return StoredValue(*self.values[key]) if key in self.values else None

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        self._called("get_many")
        return {key: self.values[key][0] for key in keys if key in self.values}

    def put_many(self, values: Mapping[str, bytes]) -> None:
        self._called("put_many")
        for key, value in values.items():
            self._write(key, value)

    def put_many_and_read(self, values: Mapping[str, bytes], key: str) -> StoredValue | None:
        found = self.read(key)
        self.put_many(values)
        return found

    def create(self, key: str, value: bytes) -> bool:
        self._called("create")
        if key in (self.created if self.redis else self.values):
            return False
        self.created.add(key)
        self._write(key, value)
        return True

    def replace(self, key: str, value: bytes, etag: str) -> bool:
        self._called("replace")
        found = self.values.get(key)
        if found[1] != etag if found else not self.redis:
            return False
        self._write(key, value)
        return True

    def delete_many(self, keys: Iterable[str]) -> None:
        self._called("delete_many")
        for key in keys:
            self.values.pop(key, None)
            self.created.discard(key)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("a"):
            raise AttributeError(name)
        method = getattr(self, name[1:])

        async def twin(*arguments: Any) -> Any:
            await asyncio.sleep(0)
            return method(*arguments)

        return twin
