"""One body of code for threads and for event loops.

The engine's activities are coroutines. In a run of mode "sync" they run in a thread on
:class:`BlockingIO`, whose coroutines never suspend, so :func:`run_in_thread` needs no event loop
(and costs no hop to one); in mode "async" they run on the runners' event loop on :class:`LoopIO`.
"""

import asyncio
import queue
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from time import sleep  # the real one, also where a test of the user's replaces time.sleep
from typing import Any, Protocol, TypeVar

from dapr_runners.engine._relay import Creation, Free
from dapr_runners.engine._wide import Wide
from dapr_runners.state import StateStore, StoredValue

T = TypeVar("T")


class Inbox(Protocol):
    """Messages put from any thread, taken by one reader."""

    def put(self, message: Any) -> None: ...
    async def take(self, seconds: float) -> Any:
        """The next message, or None after ``seconds``."""
        ...


class Spawned(Protocol):
    """Something that runs beside its starter."""

    def done(self) -> bool: ...

    async def wait(self, io: "IO") -> None:
        """Until it has ended; raises what it raised. From a thread or a loop, as ``io`` is."""
        ...


class _SpawnedThread:
    def __init__(self, future: "Future[Any]") -> None:
        self._future = future

    def done(self) -> bool:
        return self._future.done()

    async def wait(self, io: "IO") -> None:
        if isinstance(io, BlockingIO):
            self._future.result()
        else:
            await asyncio.wrap_future(self._future)


class _ThreadInbox:
    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, message: Any) -> None:
        self._queue.put(message)

    async def take(self, seconds: float) -> Any:
        try:
            return self._queue.get(timeout=seconds)
        except queue.Empty:
            return None


class _LoopInbox:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[Any] = asyncio.Queue()

    def put(self, message: Any) -> None:
        if _is_running(self._loop):
            self._queue.put_nowait(message)  # at once: the step that tells it goes on right after
        # The reader's loop may be gone by the time a late record is announced.
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._queue.put_nowait, message)

    async def take(self, seconds: float) -> Any:
        if not self._queue.empty():
            return self._queue.get_nowait()
        try:
            async with asyncio.timeout(seconds):
                return await self._queue.get()
        except TimeoutError:
            return None


def _is_running(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class IO(Protocol):
    """The state store and the clock, as an activity sees them."""

    async def get(self, key: str) -> bytes | None: ...
    async def read(self, key: str) -> StoredValue | None: ...
    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]: ...
    async def create(self, key: str, value: bytes) -> bool: ...
    async def create_many(self, values: Mapping[str, bytes]) -> dict[str, bool]:
        """Create keys in one call: each has its own result. For small values."""
        ...

    async def replace(self, key: str, value: bytes, etag: str) -> bool: ...
    async def put_many(self, values: Mapping[str, bytes]) -> None: ...
    async def delete_many(self, keys: Sequence[str]) -> None: ...
    async def parts_of(self, keys: Sequence[str]) -> list[str]:
        """The keys of the parts of large values: to be deleted with ``keys``."""
        ...

    async def call(self, function: Callable[[], T]) -> T:
        """Call a function that blocks."""
        ...

    @property
    def inner(self) -> "IO":
        """What the framework's adapter works with."""
        ...

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine of the adapter, which works with ``inner``."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> "Spawned":
        """Run a coroutine beside this one."""
        ...

    async def sleep(self, seconds: float) -> None: ...
    def inbox(self) -> Inbox: ...


class BlockingIO(Wide):
    """For a thread: every coroutine has finished when it is first stepped."""

    def __init__(
        self,
        store: StateStore,
        submit: "Callable[[Callable[[], Any]], Future[Any]] | None" = None,
    ) -> None:
        super().__init__()
        self._store = store
        self._submit = submit

    @property
    def inner(self) -> IO:
        return self

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await start()

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> Spawned:
        if self._submit is None:
            raise RuntimeError("there are no threads to spawn on")
        return _SpawnedThread(self._submit(lambda: run_in_thread(coroutine)))

    async def _read(self, key: str) -> StoredValue | None:
        return self._store.read(key)

    async def _get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return self._store.get_many(keys)

    async def _create(self, key: str, value: bytes) -> bool:
        return self._store.create(key, value)

    async def create_many(self, values: Mapping[str, bytes]) -> dict[str, bool]:
        return self._store.create_many(values)

    async def _replace(self, key: str, value: bytes, etag: str) -> bool:
        return self._store.replace(key, value, etag)

    async def put_many(self, values: Mapping[str, bytes]) -> None:
        self._store.put_many(values)

    async def delete_many(self, keys: Sequence[str]) -> None:
        self._store.delete_many(keys)

    async def call(self, function: Callable[[], T]) -> T:
        return function()

    async def sleep(self, seconds: float) -> None:
        sleep(seconds)  # noqa: ASYNC251 - this coroutine is driven by a thread

    def inbox(self) -> Inbox:
        return _ThreadInbox()


class LoopIO(Wide):
    """For an event loop."""

    def __init__(self, store: StateStore) -> None:
        super().__init__()
        self._store = store

    @property
    def inner(self) -> IO:
        return self

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await start()

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> Spawned:
        loop = asyncio.get_running_loop()
        return _SpawnedThread(asyncio.run_coroutine_threadsafe(coroutine, loop))

    async def _read(self, key: str) -> StoredValue | None:
        return await self._store.aread(key)

    async def _get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._store.aget_many(keys)

    async def _create(self, key: str, value: bytes) -> bool:
        return await self._store.acreate(key, value)

    async def create_many(self, values: Mapping[str, bytes]) -> dict[str, bool]:
        return await asyncio.to_thread(self._store.create_many, values)

    async def _replace(self, key: str, value: bytes, etag: str) -> bool:
        return await self._store.areplace(key, value, etag)

    async def put_many(self, values: Mapping[str, bytes]) -> None:
        await self._store.aput_many(values)

    async def delete_many(self, keys: Sequence[str]) -> None:
        await self._store.adelete_many(keys)

    async def call(self, function: Callable[[], T]) -> T:
        return await asyncio.to_thread(function)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def inbox(self) -> Inbox:
        return _LoopInbox()


class RelayIO(BlockingIO):
    """For one of many parallel steps of a run of mode "sync", driven by :class:`Relay`: its record
    is written together with those of the others, and its thread goes on to the next step instead of
    waiting for it."""

    @property
    def inner(self) -> IO:
        return self._inner

    def __init__(self, store: StateStore, inner: BlockingIO) -> None:
        super().__init__(store)
        self._inner = inner

    async def run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        await Free()
        return await start()

    async def _create(self, key: str, value: bytes) -> bool:
        return await Creation(self._store, key, value)


def run_in_thread(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, in this thread."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError("a coroutine of a run of mode 'sync' suspended")


def iterate_in_thread(iterator: AsyncIterator[T]) -> Iterator[T]:
    """The items of an asynchronous generator that never suspends, in this thread."""
    while True:
        step: Any = iterator.__anext__()
        try:
            step.send(None)
        except StopIteration as stop:
            yield stop.value
        except StopAsyncIteration:
            return
