"""Who may run a step without looking for its record.

The process that made a plan holds what its steps need, and mostly gets them, right after. To look
first whether each is recorded would cost a call to the store a step. Where there is no other worker
(see ``_company``), nobody else can have recorded it. And while another one is new, and the planner
may not know of it, that one records a step later than the planner would run it without a look:
counted from when it got it, which was after the plan was made.
"""

import time

from dapr_runners.engine._work import Work

_ALONE = {"fuse": 0.02, "commit": 0.02, "step": 0.1}
"""Seconds, by operation: a lone step follows its plan at once, of many some follow later. A begin
finds its own way: its adapter has made no plan yet."""
_KEPT = 4096


class PlansMade:
    """The plans that this process has made of late."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str], float] = {}
        self._scheduled: dict[str, None] = {}

    def add(self, work: Work) -> None:
        """``work`` has made a plan. To be called before anybody is told of it."""
        self._times[work.run, work.key] = time.monotonic()
        while len(self._times) > _KEPT:
            del self._times[next(iter(self._times))]

    def scheduling(self, run: str) -> None:
        """This process is about to schedule ``run``."""
        self._scheduled[run] = None
        while len(self._scheduled) > _KEPT:
            del self._scheduled[next(iter(self._scheduled))]

    def is_from_here(self, work: Work) -> bool:
        """Whether this process has planned ``work``, or scheduled the run that it begins. Anything
        else may be left from before: its run may have been cancelled while nobody worked."""
        if "at" in work.item:
            return (work.run, work.item["at"]) in self._times
        return work.run in self._scheduled

    def is_first(self, work: Work) -> bool:
        """Whether nobody can have recorded ``work`` yet."""
        seconds = _ALONE.get(work.op)
        if seconds is None:
            return True
        made = self._times.get((work.run, work.item["at"]))
        return made is not None and time.monotonic() - made < seconds

    def pause(self, work: Work, received: float) -> float:
        """Seconds to wait before ``work`` is recorded, which this process got at ``received`` (on
        the monotonic clock)."""
        seconds = _ALONE.get(work.op)
        if seconds is None or (work.run, work.item["at"]) in self._times:
            return 0.0
        return received + seconds * 1.25 - time.monotonic()
