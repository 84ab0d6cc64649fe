"""The effects of one attempt at a step, matched with those that attempts before it have begun."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from dapr_runners._current_step import CurrentStep, StepAttempt
from dapr_runners.effects._keys import given_key, own_key
from dapr_runners.effects._notes import Notes
from dapr_runners.effects._records import Marker
from dapr_runners.effects._requests import Requests
from dapr_runners.effects.errors import EffectMismatchError
from dapr_runners.engine import IO, BlockingIO, Breaks, Halt, LoopIO, PatientIO, begun_in, begun_key
from dapr_runners.state import Codec, StateStore

Place = Callable[[], tuple[str, int]]
"""Which part of the step runs, and which attempt at it that is."""

_ASKED_SOON = 1.0
"""Seconds in which parallel calls of a step that runs again ask for what was begun before."""


@dataclass(frozen=True, slots=True)
class EffectHost:
    """Where a runner's effects are recorded. ``version`` is that of its graph; ``place`` tells
    where in a step its code is, if a framework runs parts of it again. ``records_answers``: those
    of chat models in its steps are recorded as well."""

    store: StateStore
    codec: Codec
    version: str = ""
    place: Place = lambda: ("", 1)
    records_answers: bool = False

    def io(self, kind: type[BlockingIO] | type[LoopIO]) -> IO:
        """The store, for threads or for event loops."""
        return PatientIO(kind(self.store), self.store.address)

    def step(
        self,
        run: str,
        key: str,
        attempt: int,
        *,
        name: str,
        tenant: str = "",
        order: tuple[int, ...] = (),
        watched: StepAttempt | None = None,
    ) -> CurrentStep:
        """The step ``key``, which people know by its ``name``. ``order`` grows with each attempt
        that follows a failed one. ``watched`` is told of this attempt."""
        effects = Effects(self, run, key, name, tenant, order)
        notes = Notes(run, key, self.place)
        return CurrentStep(run, key, attempt, tenant, effects, notes, name, watched)


@dataclass(slots=True)
class Entry:
    """An effect that ``part`` of the step (its key, or more) has begun, or is about to. ``number``
    is that of its marker, ``token`` the last that was claimed for it."""

    part: str
    effect: str
    ordinal: int
    key: str
    fingerprint: str
    token: int = 0
    number: int | None = None
    is_begun: bool = False
    """Whether its record must be there."""
    handled: bool = False
    """Whether the step went on after it had raised."""
    asked_by: tuple[str, int] | None = None


@dataclass(slots=True)
class _Chain:
    """The effects of a step and of its parts, in the order in which they were begun."""

    run: str
    step: str
    lock: threading.Lock = field(default_factory=threading.Lock)
    entries: list[Entry] | None = None
    next_number: int = 0

    async def load(self, io: IO) -> None:
        """Read what attempts before have begun, unless it is read."""
        if self.entries is not None:
            return
        entries: list[Entry] = []
        handled: set[str] = set()
        async for number, plain in begun_in(self.run, self.step, io):
            handled.update(plain.pop("after"))
            entries.append(Entry(**plain, number=number, is_begun=True))
        for entry in entries:
            entry.handled = entry.key in handled
        entries.sort(key=lambda entry: entry.ordinal)
        with self.lock:
            if self.entries is None:
                self.entries = entries
                self.next_number = max((e.number or 0 for e in entries), default=-1) + 1


class Effects:
    """The effects of one attempt at a step, or at a part of it. Thread-safe."""

    def __init__(
        self,
        host: EffectHost,
        run: str,
        step: str,
        name: str,
        tenant: str,
        order: tuple[int, ...],
        around: "Effects | None" = None,
    ) -> None:
        self.host = host
        self.run = run
        self.step = step
        self.name = name
        self.tenant = tenant
        self.halted: Halt | None = None
        self.requests = Requests() if around is None else around.requests
        self._order = order
        self._around = around
        self._chain: _Chain = _Chain(run, step) if around is None else around._chain
        self._passes = 0
        self._raised: set[str] = set()

    # -- the step's side

    def check(self) -> None:
        """Raise what one of them has stopped the step with, if its code has swallowed that."""
        if self.halted is not None:
            raise self.halted

    def halt(self, halt: Halt) -> None:
        """``halt`` ends the step, whatever its code makes of it."""
        self.halted = halt
        if self._around is not None:
            self._around.halt(halt)

    def new_pass(self) -> None:
        """The code of the step begins, for the first time or again."""
        with self._chain.lock:
            self._passes += 1
            self._raised.clear()
            self.requests.clear()
            for entry in self._mine():
                entry.asked_by = None

    def inside(self, key: str) -> "Effects":
        """The effects of a part of the step that is recorded for itself."""
        return Effects(self.host, self.run, key, self.name, self.tenant, self._order, self)

    # -- the effects' side

    @property
    def whole(self) -> str:
        """Key of the step, where this is only a part of it."""
        return self._chain.step

    def order_now(self) -> tuple[int, ...]:
        """Which attempt at its step an effect belongs to that begins now."""
        return (*self._order, self._passes, self.host.place()[1])

    def raised(self, entry: Entry) -> None:
        """``entry`` raises in this attempt."""
        with self._chain.lock:
            self._raised.add(entry.key)

    async def entry(self, effect: str, fingerprint: str, given: str | None, io: IO) -> Entry:
        """The effect that a call is. Raises when the step has begun another in its place."""
        await self._chain.load(io)
        give_up_at = time.monotonic() + _ASKED_SOON
        while True:
            with self._chain.lock:
                found = (
                    self._next(effect, fingerprint)
                    if given is None
                    else self._named(effect, fingerprint, given)
                )
            if isinstance(found, Entry):
                return found
            if time.monotonic() > give_up_at:
                raise self.mismatch(effect, found)
            await io.sleep(0.02)

    def mismatch(self, effect: str, key: str) -> Breaks:
        """What a call is answered with that has other arguments than are recorded under ``key``."""
        return Breaks(
            EffectMismatchError(run_id=self.run, step=self.name, effect=effect, idempotency_key=key)
        )

    def _entries(self) -> list[Entry]:
        assert self._chain.entries is not None
        return self._chain.entries

    def _mine(self) -> list[Entry]:
        return [entry for entry in self._chain.entries or () if entry.part == self.step]

    def _named(self, effect: str, fingerprint: str, given: str) -> Entry:
        key = given_key(self.tenant, effect, given)
        found = next((entry for entry in self._entries() if entry.key == key), None)
        if found is None:
            found = Entry(self.step, effect, 0, key, fingerprint)
            self._entries().append(found)
        return found

    def _next(self, effect: str, fingerprint: str) -> Entry | str:
        """The effect, or the key of one with other arguments that was not asked for yet."""
        place = self.host.place()
        mine = [entry for entry in self._mine() if entry.effect == effect and entry.ordinal]
        for entry in mine:
            by = entry.asked_by
            if by is not None and by[0] == place[0] and by[1] < place[1]:
                entry.asked_by = None  # that part of the step runs again
        unasked = [entry for entry in mine if entry.asked_by is None]
        taken = next((entry for entry in unasked if entry.fingerprint == fingerprint), None)
        if taken is None:
            if unasked:
                return unasked[0].key
            ordinal = len(mine) + 1
            key = own_key(self.run, self.step, effect, ordinal)
            taken = Entry(self.step, effect, ordinal, key, fingerprint)
            self._entries().append(taken)
        taken.asked_by = place
        return taken

    def marker(self, entry: Entry, token: int) -> Marker:
        """What names ``entry`` among the effects of the step, from now on with ``token``."""
        chain = self._chain
        with chain.lock:
            if entry.number is None:
                entry.number = chain.next_number
                chain.next_number += 1
            after = sorted(self._raised)
        entry.token = token
        plain = {
            "part": entry.part,
            "effect": entry.effect,
            "ordinal": entry.ordinal,
            "key": entry.key,
            "fingerprint": entry.fingerprint,
            "token": token,
            "after": after,
        }
        return Marker(begun_key(chain.run, chain.step, entry.number), json.dumps(plain).encode())
