"""What a collection of garbage leaves out while a worker works.

A full collection looks at every object of the process. Those of the imported packages are most of
them, and live on: on a program with LangGraph it takes 0.1 s, time and again, in which no step
begins (Python 3.11; ``gc.freeze`` in Python's documentation).
"""

import gc

_PYTHONS_OWN = 1000
"""Objects that are frozen at most where nobody has frozen any: Python 3.12 begins with some 400."""


class Garbage:
    """Leaves what there is at the start out of collections until the end, unless the program has
    its own way: it has frozen objects itself, or collects no garbage. Until then cycles of what was
    there at the start stay, when they become garbage. Of several in a process, the first to end
    ends it for all."""

    def __init__(self) -> None:
        self._is_frozen = False

    def freeze(self) -> None:
        """Leave out what there is now, when what is garbage of it is gone."""
        if gc.isenabled() and gc.get_freeze_count() < _PYTHONS_OWN:
            gc.collect()
            gc.freeze()
            self._is_frozen = True

    def thaw(self) -> None:
        """Take in again what was left out."""
        if self._is_frozen:
            gc.unfreeze()
            self._is_frozen = False
