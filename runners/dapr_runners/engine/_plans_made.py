"""Which plans were made in this process, and which runs begun.

The process that made a plan holds what its steps need, and mostly gets them. To look first whether
each is recorded would cost a call to the store a step. Where there is no other worker (see
``_company``), nobody else can have recorded it, so the look is saved.
"""

from dapr_runners.engine._work import Work

_KEPT = 4096


class PlansMade:
    """The plans that this process has made of late."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, str], None] = {}
        self._scheduled: dict[str, None] = {}

    def add(self, work: Work) -> None:
        """``work`` has made a plan. To be called before anybody is told of it."""
        self._plans[work.run, work.key] = None
        while len(self._plans) > _KEPT:
            del self._plans[next(iter(self._plans))]

    def scheduling(self, run: str) -> None:
        """This process is about to schedule ``run``."""
        self._scheduled[run] = None
        while len(self._scheduled) > _KEPT:
            del self._scheduled[next(iter(self._scheduled))]

    def is_from_here(self, work: Work) -> bool:
        """Whether this process has planned ``work``, or scheduled the run that it begins. Anything
        else may be left from before: its run may have been cancelled while nobody worked."""
        if "at" in work.item:
            return (work.run, work.item["at"]) in self._plans
        return work.run in self._scheduled
