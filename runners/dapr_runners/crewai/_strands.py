"""Deterministic names for CrewAI's threads of control, and how many of them can go on.

A *strand* is one thread of control of a run: the main one, an asynchronous task, one of several
tool calls at once, a flow method. A *place* is where on a strand the code is: its path names the
steps asked for there. Places travel by context variable, as CrewAI copies contexts to its threads.

Paths: ``main.crew.task0`` is a scope on the main strand, ``main.crew+task1`` another strand.
"""

import re
import threading
from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dapr_runners.crewai._driver import Driver

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def safe(label: str) -> str:
    """``label`` as part of a path, which is part of a record's key."""
    return _UNSAFE.sub("-", label)[:48]


def strand_of(path: str) -> str:
    """The path of the strand that the place, or the step, ``path`` is on."""
    head, plus, last = path.partition("!")[0].rpartition("+")
    return head + plus + last.partition(".")[0]


class Strand:
    """A thread of control. Its fields are guarded by the driver's lock."""

    __slots__ = ("calls", "driver", "last_request", "open", "parent", "path", "waits")

    def __init__(self, driver: "Driver", path: str, parent: "Strand | None") -> None:
        self.driver = driver
        self.path = path
        self.parent = parent
        self.open: set[Strand] = set()
        self.waits = 0  # > 0: it only waits for the strands it opened
        self.calls: Calls | None = None
        self.last_request: Any = None

    def running(self) -> int:
        """How many threads of control can go on, this one and those below it."""
        own = 0 if self.waits and self.open else 1
        return own + sum(strand.running() for strand in self.open)


class Place:
    """Where on a strand code is."""

    __slots__ = ("_counts", "_lock", "path", "strand")

    def __init__(self, strand: Strand, path: str) -> None:
        self.strand = strand
        self.path = path
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def driver(self) -> "Driver":
        return self.strand.driver

    def number(self, kind: str) -> int:
        """How many of ``kind`` came before here."""
        with self._lock:
            number = self._counts[kind]
            self._counts[kind] += 1
            return number

    def inner(self, label: str) -> "Place":
        """A scope inside this place, on the same strand."""
        return Place(self.strand, f"{self.path}.{self._label(label)}")

    def fork(self, label: str, below: Strand | None = None) -> "Place":
        """A new strand, opened here. It must be closed (:meth:`Driver.close`). ``below`` is the
        strand that it is a child of, if that is not the one of this place."""
        path = f"{self.path}+{self._label(label)}"
        return Place(self.driver.open(below or self.strand, path), path)

    def _label(self, label: str) -> str:
        label = safe(label)
        number = self.number(f"in {label}")
        return f"{label}-{number}" if number else label


class Calls:
    """Several tool calls at once: a strand each, opened before any of them starts, in their
    order. As many are open at a time as the pool that runs them has threads."""

    def __init__(self, place: Place, calls: list[Any], width: int) -> None:
        self._place = place
        self._calls = calls
        self._lock = threading.Lock()
        self._places: list[Place] = []
        self._left = len(calls)
        place.driver.wait_for_children(place.strand, +1)
        for _ in range(width):
            self._open_next()

    def _open_next(self) -> None:
        if len(self._places) < len(self._calls):
            self._places.append(self._place.fork(f"call{len(self._places)}"))

    def place_of(self, call: Any) -> Place | None:
        """The place of one of the calls."""
        number = next((n for n, known in enumerate(self._calls) if known is call), None)
        if number is None:
            return None
        with self._lock:
            while len(self._places) <= number:
                self._open_next()
            return self._places[number]

    def ended(self, place: Place) -> None:
        """A call is over."""
        with self._lock:
            self._open_next()
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            self._place.strand.calls = None
            place.driver.wait_for_children(self._place.strand, -1, closing=place.strand)
        else:
            place.driver.close(place.strand)


here: ContextVar[Place | None] = ContextVar("dapr_runners_crewai_place", default=None)
inside_step: ContextVar[bool] = ContextVar("dapr_runners_crewai_inside_step", default=False)


def current_place() -> Place | None:
    """Where this code is in a driven run; None outside of one, and inside its steps."""
    place = here.get()
    return None if place is None or inside_step.get() else place
