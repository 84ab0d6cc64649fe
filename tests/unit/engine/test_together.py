"""Steps of a superstep wait for each other, but not for those that do not come."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from dapr_runners.engine import _together
from dapr_runners.engine._together import Together

pytestmark = pytest.mark.timeout(60)

HERE = ("run", "", 3)


def go_on(scene: Callable[[Together], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(30):
            await scene(Together())

    asyncio.run(within())


def test_the_last_lets_all_go_on_at_once() -> None:
    async def scene(together: Together) -> None:
        log: list[str] = []

        async def step() -> None:
            log.append("arrives")
            await together.arrive(HERE)
            log.append("goes on")

        together.expect(HERE, 3)
        await asyncio.gather(step(), step(), step())
        assert log == ["arrives"] * 3 + ["goes on"] * 3

    go_on(scene)


def test_those_that_do_not_come_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_together, "_TICK", 0.001)

    async def scene(together: Together) -> None:
        together.expect(HERE, 3)
        await asyncio.gather(together.arrive(HERE), together.arrive(HERE))
        await together.arrive(HERE)  # it comes after all, and waits for nobody

    go_on(scene)


def test_nothing_arrives_while_the_process_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_together, "_TICK", 0.01)

    async def scene(together: Together) -> None:
        log: list[str] = []

        async def step() -> None:
            await together.arrive(HERE)
            log.append("goes on")

        together.expect(HERE, 3)
        first = [asyncio.ensure_future(step()) for _ in range(2)]
        await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251 - far longer than all ticks
        for _ in range(5):  # one to let them go, and one to go on
            await asyncio.sleep(0)
        assert not log
        await asyncio.gather(*first, step())
        assert log == ["goes on"] * 3

    go_on(scene)


@pytest.mark.parametrize("steps", [0, 1])
def test_one_alone_waits_for_nobody(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    monkeypatch.setattr(_together, "_TICK", 60.0)

    async def scene(together: Together) -> None:
        together.expect(HERE, steps)
        await together.arrive(HERE)
        await together.arrive(("run", "", 4))

    go_on(scene)


def test_no_more_wait_than_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_together, "_TICK", 60.0)
    monkeypatch.setattr(_together, "_WAITING", 4)

    async def scene(together: Together) -> None:
        for first in (0, 2):  # the second time as the first: nobody is counted twice
            supersteps = [("run", "", first), ("run", "", first + 1)]
            for superstep in supersteps:
                together.expect(superstep, 9)
            await asyncio.gather(*(together.arrive(each) for each in supersteps * 2))

    go_on(scene)


def test_one_that_is_cancelled_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_together, "_TICK", 0.001)

    async def scene(together: Together) -> None:
        together.expect(HERE, 3)
        first, second = (asyncio.ensure_future(together.arrive(HERE)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()

    go_on(scene)


def test_one_whose_loop_ends_keeps_nobody_waiting_on_the_next() -> None:
    together = Together()

    async def cut() -> None:
        together.expect(HERE, 4)
        step = asyncio.ensure_future(together.arrive(HERE))
        await asyncio.sleep(0)
        step.cancel()
        await asyncio.wait([step])

    async def again(_: Together) -> None:
        await asyncio.gather(together.arrive(HERE), together.arrive(HERE))

    asyncio.run(cut())
    go_on(again)
