"""Large values, stored once under the hash of their content.

Up to ``_PART`` bytes an artifact is one key. A larger one is several, as a sidecar takes 4 MiB a
call: its own key then lists the hashes of its parts, and is written last.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dapr_runners.state._hashes import HASH_BYTES
from dapr_runners.state._store import StateStore
from dapr_runners.state.errors import CorruptRecordError

_PART = 1 << 20
_CALL = 3 << 20
_INDEX = b"parts\x00"


class ArtifactCache:
    """What this process read or wrote of late, so that it need not ask the store again.

    ``max_bytes`` bounds the content that is kept, ``max_known`` the keys known to be stored. Runs
    and threads may share one.
    """

    def __init__(self, max_bytes: int = 64 << 20, max_known: int = 100_000) -> None:
        self._max_bytes = max_bytes
        self._max_known = max_known
        self._bytes = 0
        self._content: OrderedDict[str, bytes] = OrderedDict()
        self._known: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def content(self, name: str) -> bytes | None:
        """The artifact called ``name``, if it is kept."""
        with self._lock:
            data = self._content.get(name)
            if data is not None:
                self._content.move_to_end(name)
            return data

    def keep(self, name: str, data: bytes) -> None:
        """Keep ``data`` as the artifact called ``name``, in place of what was not used longest."""
        if len(data) > self._max_bytes:
            return
        with self._lock:
            if name not in self._content:
                self._bytes += len(data)
            self._content[name] = data
            self._content.move_to_end(name)
            while self._bytes > self._max_bytes:
                self._bytes -= len(self._content.popitem(last=False)[1])

    def knows(self, key: str) -> bool:
        """Whether the store is known to hold ``key``."""
        with self._lock:
            return key in self._known

    def learn(self, keys: Iterable[str]) -> None:
        """Remember that the store holds ``keys``."""
        with self._lock:
            for key in keys:
                self._known[key] = None
                self._known.move_to_end(key)
            while len(self._known) > self._max_known:
                self._known.popitem(last=False)

    def forget(self, prefix: str) -> None:
        """Forget that keys that begin with ``prefix`` are stored: they were deleted."""
        with self._lock:
            for key in [key for key in self._known if key.startswith(prefix)]:
                del self._known[key]


class Artifacts:
    """The artifacts below ``prefix`` in ``store``, at ``{prefix}/a/{hash}``.

    ``limit``: the bytes from which a value is worth a key of its own. An artifact never changes, so
    writing one twice is harmless, and a process writes it once.
    """

    def __init__(
        self,
        store: StateStore,
        prefix: str,
        limit: int = 65_536,
        *,
        cache: ArtifactCache | None = None,
    ) -> None:
        self.prefix = prefix
        self.limit = limit
        self._store = store
        self._cache = ArtifactCache() if cache is None else cache

    def put_many(self, contents: Sequence[bytes]) -> list[str]:
        """Store ``contents`` and give their hashes, in the same order."""
        names, calls = self._writes(contents)
        for values in calls:
            self._store.put_many(values)
            self._cache.learn(values)
        return names

    async def aput_many(self, contents: Sequence[bytes]) -> list[str]:
        """Twin of :meth:`put_many`."""
        names, calls = self._writes(contents)
        for values in calls:
            await self._store.aput_many(values)
            self._cache.learn(values)
        return names

    def get_many(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of artifacts by hash.

        Raises :class:`CorruptRecordError` if one is missing or is not what its hash says.
        """
        found, missing = self._cached(names)
        stored = self._store.get_many([self.key(name) for name in missing])
        parts = self._store.get_many([self.key(part) for part in self._parts(stored)])
        return found | self._assembled(missing, stored, parts)

    async def aget_many(self, names: Iterable[str]) -> dict[str, bytes]:
        """Twin of :meth:`get_many`."""
        found, missing = self._cached(names)
        stored = await self._store.aget_many([self.key(name) for name in missing])
        parts = await self._store.aget_many([self.key(part) for part in self._parts(stored)])
        return found | self._assembled(missing, stored, parts)

    def delete_many(self, names: Iterable[str]) -> None:
        """Delete artifacts by hash, with their parts. Those that do not exist are passed over."""
        keys = self.keys_of(names)
        self._cache.forget(self.key(""))
        self._store.delete_many(keys)

    async def adelete_many(self, names: Iterable[str]) -> None:
        """Twin of :meth:`delete_many`."""
        keys = [self.key(name) for name in names]
        parts = self._parts(await self._store.aget_many(keys))
        self._cache.forget(self.key(""))
        await self._store.adelete_many([*keys, *map(self.key, parts)])

    def keys_of(self, names: Iterable[str]) -> list[str]:
        """The keys in the store of artifacts, by hash, and of their parts."""
        keys = [self.key(name) for name in names]
        return [*keys, *map(self.key, self._parts(self._store.get_many(keys)))]

    def name(self, data: bytes) -> str:
        """The hash that names ``data``, in hexadecimal (see StateStore.content_digest)."""
        return self._digest(data).hex()

    def _digest(self, data: bytes) -> bytes:
        return self._store.content_digest(self.prefix, data)

    def _is_named(self, name: str, data: bytes) -> bool:
        return self._store.is_content(bytes.fromhex(name), self.prefix, data)

    def is_known(self, name: str) -> bool:
        """Whether the artifact called ``name`` is known to be stored."""
        return self._cache.knows(self.key(name))

    def key(self, name: str) -> str:
        """The key in the store of the artifact called ``name``."""
        return f"{self.prefix}/a/{name}"

    # -- writing

    def _writes(self, contents: Sequence[bytes]) -> tuple[list[str], Iterator[dict[str, bytes]]]:
        names = [self.name(data) for data in contents]
        for name, data in zip(names, contents, strict=True):
            self._cache.keep(name, data)
        return names, self._calls(dict(zip(names, contents, strict=True)))

    def _calls(self, named: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
        """What to write, in calls of a size a sidecar takes."""
        call: dict[str, bytes] = {}
        size = 0
        for name, data in named.items():
            for key, value in self._values(name, data):
                if self._cache.knows(key) or key in call:
                    continue
                if size + len(value) > _CALL and call:
                    yield call
                    call, size = {}, 0
                call[key] = value
                size += len(value)
        if call:
            yield call

    def _values(self, name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
        if len(data) <= _PART:
            yield self.key(name), data
            return
        parts = [data[start : start + _PART] for start in range(0, len(data), _PART)]
        for part in parts:
            yield self.key(self.name(part)), part
        yield self.key(name), _INDEX + b"".join(map(self._digest, parts))

    # -- reading

    def _cached(self, names: Iterable[str]) -> tuple[dict[str, bytes], list[str]]:
        found: dict[str, bytes] = {}
        missing: list[str] = []
        for name in dict.fromkeys(names):
            data = self._cache.content(name)
            if data is None:
                missing.append(name)
            else:
                found[name] = data
        return found, missing

    def _parts(self, stored: Mapping[str, bytes]) -> list[str]:
        """The parts of those ``stored`` artifacts that have parts."""
        return [
            part
            for key, value in stored.items()
            if not self._is_whole(key, value)
            for part in _listed(value)
        ]

    def _is_whole(self, key: str, value: bytes) -> bool:
        # Content may look like a list of parts, so the hash decides.
        return not value.startswith(_INDEX) or self._is_named(key.rpartition("/")[2], value)

    def _assembled(
        self, names: Iterable[str], stored: Mapping[str, bytes], parts: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name in names:
            key = self.key(name)
            data = stored.get(key)
            if data is None:
                raise CorruptRecordError(key, "it is missing")
            if not self._is_whole(key, data):
                data = b"".join(parts.get(self.key(part), b"") for part in _listed(data))
            if not self._is_named(name, data):
                raise CorruptRecordError(key, "its content is not what its hash says")
            self._cache.keep(name, data)
            found[name] = data
        self._cache.learn([*stored, *parts])
        return found


def _listed(index: bytes) -> list[str]:
    """The hashes in the value of an artifact that has parts; none if it is not one."""
    hashes = index.removeprefix(_INDEX)
    if hashes == index:
        return []
    return [hashes[start : start + HASH_BYTES].hex() for start in range(0, len(hashes), HASH_BYTES)]
