"""The messages that one attempt at a step has noted, until they are recorded with it."""

import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Place = Callable[[], tuple[str, int]]


@dataclass(slots=True, eq=False)
class _Part:
    """The step, or a part of it that is recorded for itself: ``key`` names it in the run, ``own``
    is the id of its task."""

    key: str
    own: str
    around: "_Part | None" = None
    passes: int = 0
    is_complete: bool = False
    """Whether its code has returned, in the newest pass."""

    def is_in(self, part: "_Part") -> bool:
        return self is part or (self.around is not None and self.around.is_in(part))


@dataclass(slots=True)
class _Note:
    """``task`` is that of a graph called inside ``part``, or ""; ``turn`` grows with each time that
    it runs again."""

    message: Json
    part: _Part
    task: str
    turn: tuple[int, int]

    @property
    def counts(self) -> bool:
        return self.part.is_complete and self.turn[0] == self.part.passes


@dataclass(slots=True, eq=False)
class _Book:
    """What the step and its parts have noted, in order."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    notes: list[_Note] = field(default_factory=list[_Note])
    parts: dict[str, _Part] = field(default_factory=dict[str, _Part])


class Notes:
    """The messages of the step ``key`` of ``run``, or of a part of it. ``place`` tells where in it
    its code is: a framework may run parts of it again. Thread-safe."""

    __slots__ = ("_book", "_part", "_place", "_run")

    def __init__(self, run: str, key: str, place: Place) -> None:
        self._run = run
        self._place = place
        self._book = _Book()
        self._part = _Part(key, key.rpartition(":")[2])

    def inside(self, name: str, around: "Notes | None") -> "Notes":
        """The part ``name`` of the step, which ``around`` calls (default: the step itself)."""
        part = Notes.__new__(Notes)
        part._run, part._place, part._book = self._run, self._place, self._book
        with self._book.lock:
            if name not in self._book.parts:
                caller = self._part if around is None else around._part
                self._book.parts[name] = _Part(f"{self._part.key}/{name}", name, caller)
            part._part = self._book.parts[name]
        return part

    # -- while it runs

    def new_pass(self) -> None:
        """Its code begins, for the first time or again: what it noted before is of a pass that
        failed."""
        with self._book.lock:
            self._part.is_complete = False
            self._part.passes += 1

    def complete(self) -> None:
        """Its code has returned."""
        self._part.is_complete = True

    def note(self, message: Json) -> str:
        """Note ``message``; its id (32 hex digits), which is added to it."""
        task, attempt = self._place()
        part, notes = self._part, self._book.notes
        if task == part.own:
            task = ""
        with self._book.lock:
            turn = part.passes, attempt
            mine = [note for note in notes if note.part is part and note.task == task]
            for note in mine:
                if note.turn < turn:
                    notes.remove(note)
            number = sum(note.turn == turn for note in mine) + 1
            whole = "\0".join(("message", self._run, part.key, task, str(number)))
            message["id"] = hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()
            notes.append(_Note(message, part, task, turn))
        return message["id"]

    # -- what is recorded

    def made_in(self, name: str) -> list[Json]:
        """The messages of the part ``name``, which is to be recorded now."""
        with self._book.lock:
            part = self._book.parts.get(name)
            if part is None:
                return []
            notes = self._book.notes
            return [note.message for note in notes if note.part.is_in(part) and note.counts]

    def recall(self, name: str, messages: list[Json]) -> None:
        """The part ``name`` is not run, as it is recorded, with ``messages``."""
        self.inside(name, None)
        with self._book.lock:
            part, notes = self._book.parts[name], self._book.notes
            part.is_complete = True
            notes[:] = [note for note in notes if not note.part.is_in(part)]
            notes.extend(_Note(message, part, "", (part.passes, 1)) for message in messages)

    def made(self, saved: Mapping[str, bool]) -> list[Json]:
        """The messages to record with the step: its own if it is complete, those of its parts that
        are, and those of the tasks inside them that are ``saved``: True if they will not run again
        even where the step does, False if they have failed."""
        with self._book.lock:
            notes = self._book.notes
            return [note.message for note in notes if saved.get(note.task, note.counts)]
