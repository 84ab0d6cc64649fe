"""How often a tool with a limit (``max_usage_count``) was used: what is seen of it is decided once
in a run.

Tasks at work at the same time may share a tool. Which of them has the last use is a matter of
chance, and would be another when a program is driven again. So what each saw is recorded, and in
which order they counted: the last to count then is the last again.
"""

import threading
from typing import Any, cast

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._strands import Place, current_place

COUNT = "current_usage_count"


def install() -> None:
    replace(crew.BaseTool, "__setattr__", _assignment)


def uses_seen(tool: Any, count: int) -> int:
    """What the code that asks for the ``count`` of ``tool`` is told."""
    place = _counting(tool)
    return count if place is None else place.driver.note(place, "uses", lambda: count)


def _assignment(original: Any) -> Any:
    def assign(self: Any, name: str, value: Any) -> None:
        place = _counting(self) if name == COUNT else None
        if place is not None:
            counts = place.driver.local.setdefault(("uses", id(self)), _Counts(self))
            if not counts.is_new(place):
                return
        original(self, name, value)

    return assign


def _counting(tool: Any) -> Place | None:
    """Where a run counts the uses of ``tool``, if that has a limit."""
    fields = cast(dict[str, Any], vars(tool))
    return None if fields.get("max_usage_count") is None else current_place()


class _Counts:
    """The counts of one tool, numbered as they were first assigned."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool  # kept: its id names it
        self._last = 0
        self._lock = threading.Lock()

    def is_new(self, place: Place) -> bool:
        """Whether no later count has been assigned than the one that the code at ``place`` does."""
        with self._lock:
            number = place.driver.note(place, "use", lambda: self._last + 1)
            is_new = number > self._last
            self._last = max(number, self._last)
            return is_new
