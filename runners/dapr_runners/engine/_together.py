"""Asynchronous steps of a superstep that begin together.

In LangGraph every asynchronous node of a superstep runs to its first ``await`` before any goes on
from there. As activities they arrive one after the other, a third of a millisecond apart: here the
first wait for the last, where all are to come to the process that planned them. All of it on one
event loop.
"""

import asyncio
from dataclasses import dataclass, field
from typing import TypeAlias

from dapr_runners.engine._intake import AT_ONCE
from dapr_runners.engine._recent import Recent

_TICK, _TICKS = 0.01, 15
"""Seconds, and how often they pass without a further arrival until those that are there do not wait
any more: others are held back, by a limit on their name say. A process that gets no processor for a
while has one long tick: nothing could arrive in it."""
_WAITING = AT_ONCE // 2
"""Steps that wait at most, of all supersteps of a runner: more would keep those that they wait for
from coming to this process."""
_GROUPS = 256
"""Supersteps that are known at most: nobody arrives where the run is over."""

Superstep: TypeAlias = tuple[str, str, int]
"""A run, a lane and the number of its plan."""


@dataclass(slots=True)
class _Group:
    left: int
    """Steps that have not arrived."""
    waiting: int = 0
    all_there: asyncio.Event = field(default_factory=asyncio.Event)
    timer: asyncio.TimerHandle | None = None


class Together:
    """The supersteps whose steps this process is to get all of."""

    def __init__(self) -> None:
        self._groups: Recent[Superstep, _Group] = Recent(_GROUPS)
        self._waiting = 0

    def expect(self, superstep: Superstep, steps: int) -> None:
        """``steps`` of ``superstep`` are about to arrive."""
        if steps > 1:
            self._groups[superstep] = _Group(steps)

    async def arrive(self, superstep: Superstep) -> None:
        """A step of ``superstep`` is here: wait for the others."""
        group = self._groups.get(superstep)
        if group is None:
            return
        if group.timer is not None:
            group.timer.cancel()
        group.left -= 1
        if group.left <= 0:
            self._let_go(superstep, group)
            await asyncio.sleep(0)  # the others go on as soon
            return
        self._wait_on(superstep, group, _TICKS)
        group.waiting += 1
        self._waiting += 1
        if self._waiting >= _WAITING:
            for each in list(self._groups.items()):
                if each[1].waiting:
                    self._let_go(*each)
        try:
            await group.all_there.wait()
        finally:  # cancelled, it may be the loop that ends: nobody waits on for those who are left
            self._let_go(superstep, group)

    def _wait_on(self, superstep: Superstep, group: _Group, ticks: int) -> None:
        if ticks == 0:
            self._let_go(superstep, group)
        else:
            loop = asyncio.get_running_loop()
            group.timer = loop.call_later(_TICK, self._wait_on, superstep, group, ticks - 1)

    def _let_go(self, superstep: Superstep, group: _Group) -> None:
        if self._groups.get(superstep) is group:
            del self._groups[superstep]
        if group.timer is not None:
            group.timer.cancel()
        self._waiting -= group.waiting
        group.waiting = 0
        group.all_there.set()
