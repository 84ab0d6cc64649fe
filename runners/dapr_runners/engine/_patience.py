"""Who asks a sidecar that is away, or whose store is, asks again for a while: they restart, and a
connection to one that did is found broken by the first to use it."""

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import grpc

from dapr_runners.engine._faults import sidecar_fault
from dapr_runners.engine._io import IO, Inbox, Spawned
from dapr_runners.state import SidecarUnreachableError, StateStoreError, StoredValue

T = TypeVar("T")

FOLLOWING = 30.0
"""Seconds that one who follows a run waits for its sidecar."""
ASKING = 3.0
"""Seconds that a single question waits: long enough for a connection to be made anew, and short
enough to say soon that nobody is there."""

_STORE_IS_AWAY = ("INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED")
"""Statuses that a sidecar answers with while its store does not answer it."""


class PatientIO:
    """Another :class:`IO`, asked again for ``seconds`` while the sidecar at ``address`` is away, or
    its store. Raises :class:`SidecarUnreachableError`, or :class:`StateStoreError`, when it stays
    away.

    A write whose answer got lost is written again: ``create`` and ``replace`` may then say that
    somebody else was first.
    """

    def __init__(self, io: IO, address: str = "", seconds: float = FOLLOWING) -> None:
        self._io = io
        self._seconds = seconds
        self._address = address

    async def get(self, key: str) -> bytes | None:
        return await self._insist(lambda: self._io.get(key))

    async def read(self, key: str) -> StoredValue | None:
        return await self._insist(lambda: self._io.read(key))

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._insist(lambda: self._io.get_many(keys))

    async def create(self, key: str, value: bytes) -> bool:
        return await self._insist(lambda: self._io.create(key, value))

    async def create_many(self, values: Mapping[str, bytes]) -> dict[str, bool]:
        return await self._insist(lambda: self._io.create_many(values))

    async def replace(self, key: str, value: bytes, etag: str) -> bool:
        return await self._insist(lambda: self._io.replace(key, value, etag))

    async def put_many(self, values: Mapping[str, bytes]) -> None:
        await self._insist(lambda: self._io.put_many(values))

    async def delete_many(self, keys: Sequence[str]) -> None:
        await self._insist(lambda: self._io.delete_many(keys))

    async def parts_of(self, keys: Sequence[str]) -> list[str]:
        return await self._insist(lambda: self._io.parts_of(keys))

    async def call(self, function: Callable[[], T]) -> T:
        try:
            return await self._insist(lambda: self._io.call(function))
        except grpc.RpcError as error:
            raise sidecar_fault(self._address, error) from error

    @property
    def inner(self) -> IO:
        return self

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await self._io.run(start)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> Spawned:
        return self._io.spawn(coroutine)

    async def sleep(self, seconds: float) -> None:
        await self._io.sleep(seconds)

    def inbox(self) -> Inbox:
        return self._io.inbox()

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        give_up_at = time.monotonic() + self._seconds
        pause = 0.02
        while True:
            try:
                return await ask()
            except (SidecarUnreachableError, StateStoreError, grpc.RpcError) as error:
                if not _is_away(error):
                    raise
                if time.monotonic() > give_up_at:
                    raise self._gone(error) from error
                await self._io.sleep(pause)
                pause = min(pause * 1.5, 0.5)

    def _gone(self, error: Exception) -> Exception:
        if isinstance(error, (SidecarUnreachableError, StateStoreError)):
            return error
        call: Any = error
        return SidecarUnreachableError(address=self._address, detail=call.details() or "")


def _is_away(error: Exception) -> bool:
    if isinstance(error, SidecarUnreachableError):
        return True
    if isinstance(error, StateStoreError):
        return error.status in _STORE_IS_AWAY
    call: Any = error
    return call.code() is grpc.StatusCode.UNAVAILABLE
