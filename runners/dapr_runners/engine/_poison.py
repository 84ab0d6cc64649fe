"""A step that kills its worker is begun a few times, and then its run is failed instead.

Attempts are counted before they begin (see ``_attempts`` for those on a hot loop). One that comes
back, even by an error of the store, is taken off again. Every step that was at work beside the
killer is counted with it; so the last attempt of each runs without others of that kind beside it,
and those that are innocent come through.
"""

import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from dapr_runners.engine._attempts import is_dead, process_identity
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import attempts_key
from dapr_runners.engine._work import Work
from dapr_runners.engine.errors import PoisonStepError
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import CorruptRecordError

_ALONE = 10.0
"""Seconds for which a last attempt is left alone: a step that kills mostly does so soon, and one
that takes long must not hold up all others."""


class PoisonGuard:
    """Lets each step begin ``limit`` times without coming back. ``planner_of`` tells which process
    planned a step; ``identity`` names this one."""

    def __init__(
        self, limit: int, identity: str, planner_of: Callable[[Work, IO], Awaitable[str | None]]
    ) -> None:
        self._limit = limit
        self._identity = identity
        self._planner_of = planner_of
        self._returned: dict[str, int] = {}
        self._last_attempts = threading.Lock()
        self._alone: set[int] = set()

    async def admit(self, work: Work, io: IO) -> PoisonStepError | None:
        """Count this attempt; an error when the step has begun too often. Follow with
        :meth:`left`, and with :meth:`came_back` before that if it raised."""
        key = attempts_key(work.run, work.key)
        mine = [self._identity, *([] if work.watch is None else [work.watch.attempt_id])]
        # Named, as creating what is there already counts as having created it.
        if work.op == "begin" and await io.create(key, begun_mark(1, *mine)):
            return None
        counted = await io.get(key)
        begun = _number(key, counted) if counted else await self._begun_hot(work, io)
        begun = max(begun - self._returned.pop(key, 0), 0)
        work.lost = counted.decode() if counted else ""
        if begun >= self._limit:
            return PoisonStepError(run_id=work.run, step=work.step_name, attempts=begun)
        if 0 < begun == self._limit - 1:
            await io.call(lambda: self._wait_to_be_alone(work))
        work.begun = begun + 1
        await io.put_many({key: begun_mark(work.begun, *mine)})
        return None

    async def age(self, work: Work, io: IO) -> float:
        """Seconds since the last attempt began, as far as is recorded."""
        counted = await io.get(attempts_key(work.run, work.key))
        return 0.0 if counted is None else time.time() - float(counted.split()[1])

    async def came_back(self, work: Work, io: IO) -> None:
        """The attempt is over and its worker lives: it does not count."""
        key = attempts_key(work.run, work.key)
        try:
            await io.put_many({key: begun_mark(work.begun - 1)})
        except DaprRunnersError:
            self._returned[key] = self._returned.get(key, 0) + 1

    def left(self, work: Work) -> None:
        """The attempt is over."""
        if id(work) in self._alone:
            self._alone.discard(id(work))
            self._last_attempts.release()

    def _wait_to_be_alone(self, work: Work) -> None:
        if self._last_attempts.acquire(timeout=_ALONE):
            self._alone.add(id(work))

    async def _begun_hot(self, work: Work, io: IO) -> int:
        """1 if the process that planned this step went on with it and is gone, else 0."""
        if work.attempt > 1 or work.op == "begin":
            return 0
        planner = await self._planner_of(work, io)
        return int(planner not in (None, self._identity) and is_dead(str(planner)))


@dataclass(frozen=True, slots=True)
class Mark:
    """What says that an attempt has begun: the ``number``-th at its step that did not come back, at
    ``time``, in seconds since the epoch. ``process`` is the identity of its worker's process, "" of
    one that has come back."""

    number: int
    time: float
    process: str

    @classmethod
    def read(cls, key: str, data: bytes) -> Self:
        """The mark in ``data``, which is stored under the state key ``key``."""
        number = _number(key, data)
        parts = data.decode().split(" ")
        return cls(number, float(parts[1]), " ".join(parts[2:5]) if number else "")

    @property
    def is_of_this_host(self) -> bool:
        """Whether it can be seen from here whether the process lives."""
        return self.process.partition(" ")[0] == process_identity().partition(" ")[0]


def begun_mark(number: int, *process: str) -> bytes:
    """The mark of the ``number``-th attempt, by the ``process`` with that identity, and more of
    it."""
    return " ".join([str(number), str(time.time()), *process]).encode()


def _number(key: str, counted: bytes) -> int:
    first = counted.split()[:1]
    if not first or not first[0].isdigit():
        raise CorruptRecordError(key=key, reason="it does not count attempts")
    return int(first[0])
