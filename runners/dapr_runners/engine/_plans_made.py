"""Which plans were made in this process, and which runs begun.

The process that made a plan holds what its steps need, and mostly gets them. To look first whether
each is recorded would cost a call to the store a step. Where there is no other worker (see
``_company``), nobody else can have recorded it, so the look is saved.
"""

from dapr_runners.engine._recent import Recent
from dapr_runners.engine._work import Work

_KEPT = 4096


class PlansMade:
    """The plans that this process has made of late."""

    def __init__(self) -> None:
        self._plans: Recent[tuple[str, str], None] = Recent(_KEPT)
        self._scheduled: Recent[str, None] = Recent(_KEPT)

    def add(self, work: Work) -> None:
        """``work`` has made a plan. To be called before anybody is told of it."""
        self._plans[work.run, work.key] = None

    def scheduling(self, run: str) -> None:
        """This process is about to schedule ``run``."""
        self._scheduled[run] = None

    def is_from_here(self, work: Work) -> bool:
        """Whether this process has planned ``work``, or scheduled the run that it begins. Anything
        else may be left from before: its run may have been cancelled while nobody worked."""
        if "at" in work.item:
            return (work.run, work.item["at"]) in self._plans
        return work.run in self._scheduled
