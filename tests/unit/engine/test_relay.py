"""Steps that go from thread to thread: results, failures and lost races reach the caller."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any

import pytest

from dapr_runners.engine._hands import Hands
from dapr_runners.engine._io import BlockingIO, RelayIO
from dapr_runners.state import StateStore, StateStoreError

pytestmark = pytest.mark.timeout(120)


class Store:
    """Creates keys, in batches that all wait for ``gate``."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.gate = threading.Event()
        self.faults: list[Exception] = []

    def create_then(self, key: str, value: bytes, tell: Any) -> None:
        threading.Thread(target=self._create, args=(key, value, tell)).start()

    def _create(self, key: str, value: bytes, tell: Any) -> None:
        assert self.gate.wait(60)
        if self.faults:
            tell(False, self.faults.pop())
        else:
            tell(self.values.setdefault(key, value) == value, None)


def relayed(hands: Hands, coroutine: Coroutine[Any, Any, Any]) -> Awaitable[Any]:
    """What ``coroutine`` gives, driven by ``hands``."""
    future: Future[Any] = Future()
    hands.begin_relay(coroutine, lambda result, error: _settle(future, result, error))
    return asyncio.wrap_future(future)


def run(hands: Hands, call: Callable[[], Any]) -> Awaitable[Any]:
    """What ``call`` gives in a thread of ``hands``."""
    future: Future[Any] = Future()
    hands.begin(call, lambda result, error: _settle(future, result, error))
    return asyncio.wrap_future(future)


def _settle(future: Future[Any], result: Any, error: BaseException | None) -> None:
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def io(store: Any) -> RelayIO:
    as_store: StateStore = store
    return RelayIO(as_store, BlockingIO(as_store))


async def test_fewer_threads_than_steps_that_wait_for_their_records(
    store: Store, io: RelayIO
) -> None:
    hands = Hands(2, "test")
    ran: list[int] = []
    all_ran = threading.Event()

    async def step(number: int) -> int:
        ran.append(number)
        if len(ran) == 20:
            all_ran.set()
        assert await io.create(str(number), b"x")
        return number

    tasks = [relayed(hands, step(number)) for number in range(20)]
    await asyncio.to_thread(all_ran.wait, 60)  # before any record is there
    store.gate.set()
    assert await asyncio.gather(*tasks) == list(range(20))
    hands.close()


async def test_a_lost_race_and_a_fault_go_on_where_they_may_block(
    store: Store, io: RelayIO
) -> None:
    hands = Hands(2, "test")
    store.gate.set()
    store.values["lost"] = b"theirs"
    store.faults.append(StateStoreError(store="s", status="UNKNOWN", detail="gone"))

    async def step() -> tuple[str, bool, str]:
        try:
            await io.create("k", b"x")
        except StateStoreError:
            first = threading.current_thread().name
        won = await io.create("lost", b"ours")
        return first, won, threading.current_thread().name

    first, won, second = await relayed(hands, step())
    assert not won
    assert first.startswith("test_") and second.startswith("test_")
    hands.close()


async def test_what_a_step_raises_reaches_its_caller(store: Store, io: RelayIO) -> None:
    hands = Hands(2, "test")
    store.gate.set()

    async def step() -> None:
        await io.create("k", b"x")
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await relayed(hands, step())
    hands.close()


async def test_steps_that_block_run_all_at_once() -> None:
    hands = Hands(8, "test")
    meeting = threading.Barrier(8, timeout=60)
    await asyncio.gather(*(run(hands, meeting.wait) for _ in range(8)))
    hands.close()


async def test_work_that_adapters_may_block_in_moves_to_such_a_thread(
    store: Store, io: RelayIO
) -> None:
    hands = Hands(2, "test")
    store.gate.set()

    async def blocking() -> str:
        return threading.current_thread().name

    async def step() -> tuple[str, str]:
        await io.create("k", b"x")
        return threading.current_thread().name, await io.run(blocking)

    told_in, ran_in = await relayed(hands, step())
    assert not told_in.startswith("test_")
    assert ran_in.startswith("test_")
    hands.close()
