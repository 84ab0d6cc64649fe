"""Large values are stored once, under the hash of their content, and checked when read."""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import pytest

from dapr_runners.state import (
    ArtifactCache,
    Artifacts,
    CorruptRecordError,
    StateStore,
    artifact_key,
)

MIB = 1 << 20


class MemoryStore:
    """What Artifacts uses of a store, in a dict, with a log of the calls."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.calls: list[tuple[str, list[str]]] = []
        self.failing = False

    def content_digest(self, scope: str, data: bytes) -> bytes:
        return bytes.fromhex(artifact_key(data))

    def is_content(self, digest: bytes, scope: str, data: bytes) -> bool:
        return digest == self.content_digest(scope, data)

    def put_many(self, values: Mapping[str, bytes]) -> None:
        self.calls.append(("put", list(values)))
        if self.failing:
            raise ConnectionError
        assert all(values.values()), "Dapr cannot store an empty value"
        assert sum(map(len, values.values())) < 4 * MIB, "a sidecar takes 4 MiB a call"
        self.values |= values

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        if keys:
            self.calls.append(("get", list(keys)))
        return {key: self.values[key] for key in keys if key in self.values}

    def delete_many(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.values.pop(key, None)

    async def aput_many(self, values: Mapping[str, bytes]) -> None:
        self.put_many(values)

    async def aget_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return self.get_many(keys)

    async def adelete_many(self, keys: Iterable[str]) -> None:
        self.delete_many(keys)


def over(store: MemoryStore, prefix: str = "run", cache: ArtifactCache | None = None) -> Artifacts:
    return Artifacts(cast(StateStore, store), prefix, cache=cache)


class Blocking:
    """The blocking methods."""

    put = staticmethod(lambda artifacts, contents: artifacts.put_many(contents))
    get = staticmethod(lambda artifacts, names: artifacts.get_many(names))
    delete = staticmethod(lambda artifacts, names: artifacts.delete_many(names))


class Async:
    """Their async twins."""

    put = staticmethod(lambda artifacts, contents: asyncio.run(artifacts.aput_many(contents)))
    get = staticmethod(lambda artifacts, names: asyncio.run(artifacts.aget_many(names)))
    delete = staticmethod(lambda artifacts, names: asyncio.run(artifacts.adelete_many(names)))


@pytest.fixture(params=[Blocking, Async], ids=["blocking", "async"])
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_content_comes_back_by_its_hash(way: Any) -> None:
    store = MemoryStore()

    names = way.put(over(store), [b"a", b"b", b"a"])

    assert names == [artifact_key(b"a"), artifact_key(b"b"), artifact_key(b"a")]
    assert names[0] == "27c35e6e9373877f29e562464e46497e"
    assert store.values == {f"run/a/{names[0]}": b"a", f"run/a/{names[1]}": b"b"}
    assert way.get(over(store), names) == {names[0]: b"a", names[1]: b"b"}


def test_a_process_writes_the_same_content_once(way: Any) -> None:
    store, cache = MemoryStore(), ArtifactCache()

    way.put(over(store, cache=cache), [b"a"])
    way.put(over(store, cache=cache), [b"a", b"b"])
    way.put(over(store, "other run", cache), [b"a"])

    assert [len(keys) for _, keys in store.calls] == [1, 1, 1]
    assert set(store.values) == {
        f"run/a/{artifact_key(b'a')}",
        f"run/a/{artifact_key(b'b')}",
        f"other run/a/{artifact_key(b'a')}",
    }


def test_content_that_was_not_written_is_written_the_next_time() -> None:
    store, cache = MemoryStore(), ArtifactCache()
    store.failing = True
    with pytest.raises(ConnectionError):
        over(store, cache=cache).put_many([b"a"])
    store.failing = False

    names = over(store, cache=cache).put_many([b"a"])

    assert over(store).get_many(names) == {names[0]: b"a"}


def test_content_is_read_from_the_store_once() -> None:
    store, cache = MemoryStore(), ArtifactCache()
    names = over(store).put_many([b"a"])
    store.calls.clear()

    for _ in range(3):
        assert over(store, cache=cache).get_many(names) == {names[0]: b"a"}
    over(store, cache=cache).put_many([b"a"])

    assert store.calls == [("get", [f"run/a/{names[0]}"])]


def large(size: int) -> bytes:
    """Content no two parts of which are the same."""
    return random.Random(1).randbytes(size)


def test_content_larger_than_a_call_is_stored_in_parts(way: Any) -> None:
    store = MemoryStore()
    contents = [large(10 * MIB) + b"x", b"small", large(MIB)]

    names = way.put(over(store), contents)

    assert way.get(over(store), names) == dict(zip(names, contents, strict=True))
    written = [key for call, keys in store.calls if call == "put" for key in keys]
    assert len(written) == len(set(written))
    assert written.index(f"run/a/{names[0]}") > written.index(f"run/a/{artifact_key(large(MIB))}")


def test_content_that_looks_like_a_list_of_parts_comes_back(way: Any) -> None:
    store = MemoryStore()
    contents = [b"parts\x00", b"parts\x00" + bytes(32), b"parts\x00" + bytes(5)]

    names = way.put(over(store), contents)

    assert way.get(over(store), names) == dict(zip(names, contents, strict=True))


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda store, key: store.values.pop(key), id="missing"),
        pytest.param(lambda store, key: store.values.update({key: b"other"}), id="other"),
        pytest.param(lambda store, key: store.values.update({key: b"parts\x00xx"}), id="no parts"),
        pytest.param(lambda store, key: store.values.pop(next(iter(store.values))), id="one part"),
    ],
)
def test_content_that_is_not_what_it_was_is_corrupt(
    way: Any, damage: Callable[[MemoryStore, str], object]
) -> None:
    store = MemoryStore()
    (name,) = way.put(over(store), [large(2 * MIB) + b"x"])
    damage(store, f"run/a/{name}")

    with pytest.raises(CorruptRecordError) as caught:
        way.get(over(store), [name])

    assert caught.value.key == f"run/a/{name}"
    assert "it is missing" in str(caught.value) or "not what its hash says" in str(caught.value)


def test_deleting_takes_the_parts_too_and_writing_again_writes(way: Any) -> None:
    store = MemoryStore()
    artifacts = over(store)
    names = way.put(artifacts, [large(2 * MIB) + b"x", b"small"])

    way.delete(artifacts, [*names, artifact_key(b"never stored")])
    assert store.values == {}

    way.put(artifacts, [b"small"])
    assert set(store.values) == {f"run/a/{artifact_key(b'small')}"}


def test_the_cache_keeps_what_was_used_last_within_its_bounds() -> None:
    cache = ArtifactCache(max_bytes=10, max_known=2)

    cache.keep("a", b"12345")
    cache.keep("b", b"12345")
    assert cache.content("a") == b"12345"
    cache.keep("c", b"12345")
    cache.keep("c", b"12345")
    cache.keep("too large", b"12345678901")

    assert cache.content("b") is None
    assert cache.content("a") == cache.content("c") == b"12345"
    assert cache.content("too large") is None

    cache.learn(["x", "y", "x", "z"])
    assert [cache.knows(key) for key in ("x", "y", "z")] == [True, False, True]
    cache.forget("x")
    assert not cache.knows("x")
