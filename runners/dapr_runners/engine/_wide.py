"""Values of any size under one key.

A sidecar takes 4 MiB a call. A value over ``_PART`` bytes is written in parts, under keys of that
write alone, before its own key gets the list of them: two writers of a key never mix, and the first
one wins with all it wrote. A process that dies in between leaves parts that nothing refers to.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from dapr_runners.state import CorruptRecordError, StoredValue

_PART = 1 << 20
_PARTS_A_CALL = 3
_INDEX = b"\x00parts\n"


class Wide(ABC):
    """Reads and writes values of any size with the calls of a subclass, which know of no limit."""

    def __init__(self) -> None:
        self._read_in_parts: dict[str, list[str]] = {}

    # -- what it is made of

    @abstractmethod
    async def _read(self, key: str) -> StoredValue | None: ...
    @abstractmethod
    async def _get_many(self, keys: Sequence[str]) -> dict[str, bytes]: ...
    @abstractmethod
    async def _create(self, key: str, value: bytes) -> bool: ...
    @abstractmethod
    async def _replace(self, key: str, value: bytes, etag: str) -> bool: ...
    @abstractmethod
    async def put_many(self, values: Mapping[str, bytes]) -> None: ...
    @abstractmethod
    async def delete_many(self, keys: Sequence[str]) -> None: ...

    # -- reading

    async def get(self, key: str) -> bytes | None:
        found = await self._read(key)
        return None if found is None else (await self._whole({key: found.value}))[key]

    async def read(self, key: str) -> StoredValue | None:
        found = await self._read(key)
        while True:
            if found is None or not found.value.startswith(_INDEX):
                self._read_in_parts.pop(key, None)
                return found
            self._read_in_parts[key] = _listed(found.value)
            try:
                whole = await self._whole({key: found.value})
            except CorruptRecordError:
                again = await self._read(key)
                if again is not None and again.etag == found.etag:
                    raise
                found = again  # replaced while it was read
            else:
                return StoredValue(whole[key], found.etag)

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._whole(await self._get_many(keys))

    async def _whole(self, stored: dict[str, bytes]) -> dict[str, bytes]:
        listed = {k: _listed(v) for k, v in stored.items() if v.startswith(_INDEX)}
        for key, parts in listed.items():
            found = await self._get_many(parts)
            if len(found) != len(set(parts)):
                raise CorruptRecordError(key=key, reason="a part of it is gone")
            stored[key] = b"".join(found[part] for part in parts)
        return stored

    async def parts_of(self, keys: Sequence[str]) -> list[str]:
        """The keys that hold the parts of the values of ``keys``."""
        stored = await self._get_many(keys)
        return [part for v in stored.values() if v.startswith(_INDEX) for part in _listed(v)]

    # -- writing

    async def create(self, key: str, value: bytes) -> bool:
        if not needs_parts(value):
            return await self._create(key, value)
        parts = _split(key, value)
        await self._put_parts(parts)
        created = await self._create(key, _index(parts))
        if not created:
            await self._drop(parts, await self.parts_of([key]))
        return created

    async def replace(self, key: str, value: bytes, etag: str) -> bool:
        before = self._read_in_parts.pop(key, [])
        if not needs_parts(value):
            replaced, parts = await self._replace(key, value, etag), {}
        else:
            parts = _split(key, value)
            await self._put_parts(parts)
            replaced = await self._replace(key, _index(parts), etag)
        if replaced:
            await self._drop(before)
        elif parts:
            await self._drop(parts, await self.parts_of([key]))
        return replaced

    async def _put_parts(self, parts: Mapping[str, bytes]) -> None:
        items = list(parts.items())
        for start in range(0, len(items), _PARTS_A_CALL):
            await self.put_many(dict(items[start : start + _PARTS_A_CALL]))

    async def _drop(self, parts: Iterable[str], kept: Iterable[str] = ()) -> None:
        # The answer to an earlier try of the same write may have got lost: what counts is kept.
        if unused := set(parts) - set(kept):
            await self.delete_many(sorted(unused))


def needs_parts(value: bytes) -> bool:
    """Whether ``value`` is too large for one key."""
    return len(value) > _PART


def _split(key: str, value: bytes) -> dict[str, bytes]:
    """The parts of ``value`` in order, by the keys to write them under."""
    write = uuid.uuid4().hex[:16]
    starts = range(0, len(value), _PART)
    return {f"{key}/part/{write}-{n}": value[at : at + _PART] for n, at in enumerate(starts)}


def _index(parts: Iterable[str]) -> bytes:
    return _INDEX + "\n".join(parts).encode()


def _listed(index: bytes) -> list[str]:
    return index.removeprefix(_INDEX).decode().split("\n")
