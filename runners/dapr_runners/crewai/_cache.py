"""The cache of tool results: what it had when a tool was called is decided once in a run.

Agents at work at the same time share the cache of their crew. Whether one finds there what another
has just put in is a matter of chance, and would be another when a program is driven again.
"""

from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._strands import current_place


def install() -> None:
    replace(crew.CacheHandler, "read", _read)


def _read(original: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None:
            return original(self, *args, **kwargs)
        return place.driver.note_found(place, "cache", lambda: original(self, *args, **kwargs))

    return call
