"""Durable timers: one heap, one pending wake-up, no polling."""

import asyncio
import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass

from dapr_runners.sidecar._instance import FOREVER

_LONGEST_SLEEP = 60.0
"""Seconds: clocks are compared at least this often, since the loop's stands still while a machine
sleeps, and the wall's is corrected."""


@dataclass(frozen=True, slots=True)
class Timer:
    """Fires at ``fire_at`` (ns since the epoch); ``event`` is the external event it guards."""

    fire_at: int
    event: str | None


_SPARE = 1_000
"""Entries of removed timers that the heap may hold beyond those that are worth a clean-up."""


class Timers:
    """Timers by instance and id. ``fire(instance_id, timer_id, timer)`` is called when due."""

    def __init__(self, fire: Callable[[str, int, Timer], None]) -> None:
        self._fire = fire
        self._timers: dict[str, dict[int, Timer]] = {}
        self._heap: list[tuple[int, str, int]] = []
        self._count = 0
        self._wake: asyncio.TimerHandle | None = None
        self._stopped = False

    def add(self, instance_id: str, timer_id: int, timer: Timer) -> None:
        """Start a timer."""
        timers = self._timers.setdefault(instance_id, {})
        self._count += timer_id not in timers
        timers[timer_id] = timer
        if timer.fire_at == FOREVER:
            return
        if len(self._heap) > 4 * self._count + _SPARE:
            self._rebuild()
            return
        heapq.heappush(self._heap, (timer.fire_at, instance_id, timer_id))
        if self._heap[0] == (timer.fire_at, instance_id, timer_id):
            self._sleep()

    def next_of(self, instance_id: str) -> int | None:
        """When the next timer of an instance fires (ns since the epoch), if it has one."""
        timers = self._timers.get(instance_id, {}).values()
        return min((timer.fire_at for timer in timers), default=None)

    def guarding(self, instance_id: str, event: str) -> int | None:
        """The oldest timer of that instance that guards a wait for ``event``."""
        for timer_id, timer in self._timers.get(instance_id, {}).items():
            if timer.event == event:
                return timer_id
        return None

    def remove(self, instance_id: str, timer_id: int) -> bool:
        """Forget one timer; whether there was one."""
        timers = self._timers.get(instance_id)
        if timers is None or timers.pop(timer_id, None) is None:
            return False
        self._count -= 1
        if not timers:
            del self._timers[instance_id]
        return True

    def remove_all(self, instance_id: str) -> bool:
        """Forget the timers of an instance; whether there were any."""
        timers = self._timers.pop(instance_id, {})
        self._count -= len(timers)
        return bool(timers)

    def stop(self) -> None:
        """Fire no more."""
        self._stopped = True
        if self._wake is not None:
            self._wake.cancel()

    def _rebuild(self) -> None:
        """Drop what removed timers left in the heap."""
        self._heap = [
            (timer.fire_at, instance_id, timer_id)
            for instance_id, timers in self._timers.items()
            for timer_id, timer in timers.items()
            if timer.fire_at != FOREVER
        ]
        heapq.heapify(self._heap)
        self._sleep()

    def _sleep(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if self._heap and not self._stopped:
            delay = (self._heap[0][0] - time.time_ns()) / 1e9
            delay = min(max(delay, 0.0), _LONGEST_SLEEP)
            self._wake = asyncio.get_running_loop().call_later(delay, self._fire_due)

    def _fire_due(self) -> None:
        self._wake = None
        now = time.time_ns()
        while self._heap and self._heap[0][0] <= now:
            fire_at, instance_id, timer_id = heapq.heappop(self._heap)
            timer = self._timers.get(instance_id, {}).get(timer_id)
            # A removed timer, or one whose id was used again, leaves its heap entry behind.
            if timer is not None and timer.fire_at == fire_at:
                self.remove(instance_id, timer_id)
                self._fire(instance_id, timer_id, timer)
        self._sleep()
