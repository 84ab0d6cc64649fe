"""Timers: order, removal, and what they leave behind."""

import asyncio
import time

from dapr_runners.sidecar._instance import FOREVER
from dapr_runners.sidecar._timers import Timer, Timers


class Fired:
    def __init__(self) -> None:
        self.ids: list[tuple[str, int]] = []
        self._more = asyncio.Event()

    def __call__(self, instance_id: str, timer_id: int, _: Timer) -> None:
        self.ids.append((instance_id, timer_id))
        self._more.set()

    async def count(self, wanted: int) -> None:
        async with asyncio.timeout(60):
            while len(self.ids) < wanted:
                self._more.clear()
                await self._more.wait()


def _soon(milliseconds: int) -> Timer:
    return Timer(time.time_ns() + milliseconds * 1_000_000, None)


async def test_timers_fire_in_order_of_their_time() -> None:
    fired = Fired()
    timers = Timers(fired)
    for number, delay in ((1, 30), (2, 10), (3, 20), (4, -5)):
        timers.add("a", number, _soon(delay))
    await fired.count(4)
    assert fired.ids == [("a", 4), ("a", 2), ("a", 3), ("a", 1)]


async def test_a_removed_timer_does_not_fire() -> None:
    fired = Fired()
    timers = Timers(fired)
    for instance_id in ("a", "b"):
        timers.add(instance_id, 1, _soon(10))
        timers.add(instance_id, 2, _soon(11))
    assert timers.remove("a", 1)
    assert not timers.remove("a", 1)
    assert timers.remove_all("b")
    assert not timers.remove_all("b")
    timers.add("c", 1, _soon(20))
    await fired.count(2)
    assert fired.ids == [("a", 2), ("c", 1)]


async def test_an_id_used_again_fires_once_at_its_new_time() -> None:
    fired = Fired()
    timers = Timers(fired)
    timers.add("a", 1, _soon(5))
    timers.remove("a", 1)
    timers.add("a", 1, _soon(30))
    timers.add("b", 1, _soon(15))
    await fired.count(2)
    assert fired.ids == [("b", 1), ("a", 1)]


async def test_a_timer_for_ever_is_known_but_never_fires() -> None:
    fired = Fired()
    timers = Timers(fired)
    timers.add("a", 1, Timer(FOREVER, "go"))
    timers.add("a", 2, Timer(FOREVER, "go"))
    timers.add("a", 3, _soon(1))
    await fired.count(1)
    assert timers.guarding("a", "go") == 1
    timers.remove("a", 1)
    assert timers.guarding("a", "go") == 2
    assert timers.guarding("a", "stop") is None


async def test_removed_timers_do_not_pile_up() -> None:
    fired = Fired()
    timers = Timers(fired)
    hour = 3_600_000
    for number in range(10_000):
        timers.add("a", number, _soon(hour))
        timers.remove("a", number)
    assert len(timers._heap) < 2_000
    timers.add("a", 1, _soon(1))
    await fired.count(1)


async def test_stopped_timers_do_not_fire() -> None:
    fired = Fired()
    timers = Timers(fired)
    timers.add("a", 1, _soon(1))
    timers.stop()
    other = Timers(fired)
    other.add("b", 1, _soon(20))
    await fired.count(1)
    assert fired.ids == [("b", 1)]
