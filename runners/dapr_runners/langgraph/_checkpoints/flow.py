"""The saver's logic written once, for threads and for event loops.

A flow is a generator that yields each thing it needs from outside, a :class:`Need`, and gets the
answer sent back. :func:`run` drives it with blocking calls, :func:`arun` with awaited ones.
"""

import asyncio
import random
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from dapr_runners.langgraph._checkpoints.errors import CheckpointContentionError
from dapr_runners.state import StateStore, StoredValue

T = TypeVar("T")

ATTEMPTS = 64
"""Writes of a document tried before giving up. At least one writer of a round wins, so that many
writers would have to meet on one document."""
CALL_BYTES = 2 << 20
"""Bytes to write in one call, unless a single value is larger. A sidecar takes 4 MiB by default."""
_LONGEST_PAUSE = 0.1
"""Seconds between two attempts."""


class Need(Protocol):
    """Something a flow waits for, in both forms."""

    def perform(self, store: StateStore) -> Any: ...
    async def aperform(self, store: StateStore) -> Any: ...


Flow: TypeAlias = Generator[Need, Any, T]


def run(store: StateStore, flow: Flow[T]) -> T:
    """Drive ``flow`` with blocking calls and return its result."""
    try:
        need = next(flow)
        while True:
            try:
                answer = need.perform(store)
            except BaseException as error:
                need = flow.throw(error)
            else:
                need = flow.send(answer)
    except StopIteration as end:
        return end.value
    finally:
        flow.close()


async def arun(store: StateStore, flow: Flow[T]) -> T:
    """Drive ``flow`` with awaited calls and return its result."""
    try:
        need = next(flow)
        while True:
            try:
                answer = await need.aperform(store)
            except BaseException as error:
                need = flow.throw(error)
            else:
                need = flow.send(answer)
    except StopIteration as end:
        return end.value
    finally:
        flow.close()


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a :class:`StateStore` method."""

    method: str
    arguments: tuple[Any, ...]

    def perform(self, store: StateStore) -> Any:
        return getattr(store, self.method)(*self.arguments)

    async def aperform(self, store: StateStore) -> Any:
        return await getattr(store, "a" + self.method)(*self.arguments)


@dataclass(frozen=True, slots=True)
class _Pause:
    seconds: float

    def perform(self, store: StateStore) -> None:
        time.sleep(self.seconds)

    async def aperform(self, store: StateStore) -> None:
        await asyncio.sleep(self.seconds)


def read(key: str) -> Flow[StoredValue | None]:
    """The value and ETag of ``key``, or None."""
    return (yield _Call("read", (key,)))


def get_many(keys: Sequence[str]) -> Flow[dict[str, bytes]]:
    """The values of those ``keys`` that exist."""
    return (yield _Call("get_many", (keys,))) if keys else {}


def put_many(values: Mapping[str, bytes]) -> Flow[None]:
    """Write ``values``, whatever their keys hold, in as many calls as their size asks for."""
    *full, rest = _calls(values)
    for call in full:
        yield _Call("put_many", (call,))
    if rest:
        yield _Call("put_many", (rest,))


def put_many_and_read(values: Mapping[str, bytes], key: str) -> Flow[StoredValue | None]:
    """Write ``values`` and read ``key``: in one round trip, if the values fit one call."""
    *full, rest = _calls(values)
    for call in full:
        yield _Call("put_many", (call,))
    return (yield _Call("put_many_and_read", (rest, key)))


def _calls(values: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    call: dict[str, bytes] = {}
    size = 0
    for key, value in values.items():
        if call and size + len(value) > CALL_BYTES:
            yield call
            call, size = {}, 0
        call[key] = value
        size += len(value)
    yield call


def delete_many(keys: Sequence[str]) -> Flow[None]:
    """Delete those ``keys`` that exist."""
    if keys:
        yield _Call("delete_many", (keys,))


def write_if_unchanged(key: str, value: bytes, found: StoredValue | None) -> Flow[bool]:
    """Write ``key`` if it still is as ``found``. False if somebody else was faster."""
    if found is None:
        return (yield _Call("create", (key, value)))
    return (yield _Call("replace", (key, value, found.etag)))


def attempts(key: str) -> Iterator[Flow[None]]:
    """Rounds of an optimistic write of ``key``: each item is the pause to make after losing.

    Raises:
        CheckpointContentionError: after :data:`ATTEMPTS` rounds.
    """
    for attempt in range(ATTEMPTS):
        longest = min(0.001 * 2**attempt, _LONGEST_PAUSE)
        yield _pause(random.uniform(0.0, longest))  # nosec B311 # spreads waits, no secret
    raise CheckpointContentionError(key=key, attempts=ATTEMPTS)


def _pause(seconds: float) -> Flow[None]:
    yield _Pause(seconds)
