"""Runs a program of CrewAI's in a thread, and holds it where a step's outcome is not recorded yet.

The program is the user's own ``kickoff()``. What it does to the outside arrives here as a *step*
with a deterministic key: recorded steps return what was recorded, at once; others are *pending*
until somebody performs them and their outcome is recorded. Only recorded outcomes are delivered,
but for one LLM call an advance, which is recorded with that advance.
"""

import asyncio
import contextvars
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol, cast

from dapr_runners._current_step import (
    CurrentStep,
    Program,
    StepAttempt,
    messages_of,
    running,
    running_program,
)
from dapr_runners.crewai._asks import Ask, Ending, Pending, Unwound, is_wait
from dapr_runners.crewai._budgets import budgets
from dapr_runners.crewai._chunks import Chunks, listening
from dapr_runners.crewai._order import Order
from dapr_runners.crewai._outcomes import Known, Outcome
from dapr_runners.crewai._requests import Request
from dapr_runners.crewai._strands import Place, Strand, here, inside_step, strand_of
from dapr_runners.crewai._types import Types
from dapr_runners.crewai.errors import StepMismatchError
from dapr_runners.effects import (
    EffectDroppedError,
    EffectUnknownError,
    NestedEffectError,
    Notes,
)
from dapr_runners.engine import Watch
from dapr_runners.state import UnstorableValueError

logger = logging.getLogger("dapr_runners")

_GRACE = 0.1
"""Seconds of quiet after which strands that ask for nothing are taken to compute for long."""

usage_of_step: contextvars.ContextVar[Counter[str] | None] = contextvars.ContextVar(
    "dapr_runners_crewai_usage", default=None
)


MISSING: Any = object()

_FINAL = (EffectUnknownError, EffectDroppedError, NestedEffectError)
"""Errors of effects that end the run: an agent that is told of one would try again, by another
call."""


class MakeStep(Protocol):
    """Makes a step to run as."""

    def __call__(
        self,
        key: str,
        attempt: int,
        *,
        name: str,
        order: tuple[int, ...],
        watched: StepAttempt | None,
    ) -> CurrentStep: ...


class Driver:
    """Drives one run in this process. ``body`` is its program; ``wake`` is called when it asks for
    something after its steps were told (:attr:`told`). ``steps`` makes the steps that its calls run
    as, and ``program`` makes steps of the effects outside of them. ``watch`` is told what the code
    between them tells."""

    def __init__(
        self,
        run: str,
        body: Callable[[], Any],
        known: Iterable[Known],
        types: Types,
        accepts_mismatch: bool,
        wake: Callable[[], None],
        steps: MakeStep | None = None,
        program: Program | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.run = run
        self._watch = watch
        self._step_of = steps or self._bare_step
        self._program = program
        self.types = types
        self.plan = -1
        self.pending: dict[str, Pending] = {}
        self.result: Any = None
        self.error: BaseException | None = None
        self.finished = False
        self.unwound = False
        self.told = False
        self.quiet = 1.0
        self.results: dict[str, Known] = {}
        self.local: dict[Any, Any] = {}
        self.on_unwinding: list[Callable[[], None]] = []
        self._body = body
        self._accepts_mismatch = accepts_mismatch
        self._wake = wake
        self._changed = threading.Condition()
        self._moves = 0
        self._known: dict[str, Known] = {}
        self._open: set[str] = set()  # told, and without an outcome
        self._notes: list[Known] = []
        self._claimed: set[str] = set()
        self._ahead: Counter[str] = Counter()
        self._unborn: dict[str, set[str]] = {}
        self.order = Order()
        self._main = Strand(self, "main", None)
        self.learn(known)

    def _bare_step(self, key: str, attempt: int, **_: Any) -> CurrentStep:
        return CurrentStep(self.run, key, attempt)

    # -- life

    def start(self) -> None:
        """Begin. The program runs in a context of its own: what a caller's context holds is not
        there where the run goes on in another process."""
        context = contextvars.Context()
        threading.Thread(
            target=context.run, args=(self._run,), name=f"crewai-{self.run}", daemon=True
        ).start()

    def _run(self) -> None:
        here.set(Place(self._main, "main"))
        running_program.set(self._program)
        if self._watch is not None:
            self._watch.driving(_is_replaying)
        try:
            self.result = self._body()
        except Unwound:
            self.unwound = True
        except Ending as ending:
            self.error = ending.error
        except BaseException as error:
            self.error = error
        with self._changed:
            self.finished = True
            self._changed.notify_all()

    def unwind(self) -> None:
        """Give the program up: its threads end. What is recorded stays."""
        with self._changed:
            self.unwound = True
            waiting = list(self.pending.values())
            self.pending.clear()
            self._changed.notify_all()
        for pending in waiting:
            pending.wakes()
        for last in self.on_unwinding:
            last()

    # -- strands

    def open(self, parent: Strand, path: str) -> Strand:
        """A new strand below ``parent``."""
        with self._changed:
            strand = Strand(self, path, parent)
            parent.open.add(strand)
            self._unborn.get(strand_of(path.rpartition("+")[0]), set[str]()).discard(path)
            self._moves += 1
        return strand

    def close(self, strand: Strand) -> None:
        """``strand`` is over."""
        with self._changed:
            self._close(strand)
            self._moves += 1
            self._changed.notify_all()

    def _close(self, strand: Strand) -> None:
        if strand.parent is not None:
            strand.parent.open.discard(strand)

    def wait_for_children(self, strand: Strand, change: int, closing: Strand | None = None) -> None:
        """``strand`` only waits for those it opened, or (-1) no longer does. ``closing`` one of
        them at the same time keeps the count right."""
        with self._changed:
            strand.waits += change
            if closing is not None:
                self._close(closing)
            self._moves += 1
            self._changed.notify_all()

    # -- what is known

    def learn(self, known: Iterable[Known]) -> None:
        """Take in what records tell; deliver what the program waits for."""
        delivered: list[Pending] = []
        with self._changed:
            for one in known:
                old = self._known.get(one.key)
                if old is None:
                    self._known[one.key] = one
                    self.order.learn(one.key)
                    if one.outcome is None:
                        self._open.add(one.key)
                    if one.key not in self._claimed:
                        self._count_ahead(one.key, +1)
                elif one.outcome is not None:
                    old.outcome = old.outcome or one.outcome
                    self._open.discard(one.key)
                    old.digest = old.digest or one.digest
                    old.request = old.request or one.request
                pending = self.pending.get(one.key)
                if pending is not None and one.outcome is not None:
                    del self.pending[one.key]
                    pending.outcome = one.outcome
                    delivered.append(pending)
            self._moves += 1
            self._changed.notify_all()
        for pending in delivered:
            pending.wakes()

    def _count_ahead(self, key: str, change: int) -> None:
        path = strand_of(key)
        self._ahead[path] += change
        if change > 0:
            while "+" in path:
                # The strand that opened this one: its own path ends where a scope begins.
                around = strand_of(path.rpartition("+")[0])
                self._unborn.setdefault(around, set()).add(path)
                path = around

    def recall(self, key: str, inside: str, hints: tuple[Any, ...] = ()) -> Any:
        """The value noted under ``key``, or :data:`MISSING`. With it, all steps whose keys begin
        with ``inside`` are taken as asked for: they led to it."""
        known = self._claim_known(key)
        if known is None or known.outcome is None:
            return MISSING
        with self._changed:
            for other in self._known:
                if other.startswith(inside) and other not in self._claimed:
                    self._claimed.add(other)
                    self._count_ahead(other, -1)
            for children in self._unborn.values():
                children.difference_update([c for c in children if c.startswith(inside)])
        return self._value(known.outcome, key, hints)

    def record_note(self, key: str, outcome: Outcome) -> None:
        """Record ``outcome`` under ``key`` with the next plan."""
        known = Known(key, outcome=outcome)
        with self._changed:
            self._known[key] = known
            self._notes.append(known)

    def is_replaying(self, strand: Strand) -> bool:
        """Whether what the strand does now was done before, by the program that recorded it."""
        return self._ahead[strand.path] > 0 or bool(self._unborn.get(strand.path))

    def has_outcome(self, key: str) -> bool:
        """Whether the outcome of the step ``key`` is recorded."""
        known = self._known.get(key)
        return known is not None and known.outcome is not None

    @property
    def unclaimed(self) -> list[str]:
        """Keys of recorded steps that the program did not ask for."""
        return [key for key in self._known if key not in self._claimed]

    def is_only_waiting(self) -> bool:
        """Whether nothing can go on before somebody answers."""
        return all(is_wait(key) for key in self._open)

    def tell(self) -> list[Pending]:
        """The pending steps that are new, which now are known. A later one wakes."""
        with self._changed:
            new = [pending for key, pending in self.pending.items() if key not in self._known]
            for pending in new:
                self._known[pending.key] = pending.known()
                self._open.add(pending.key)
                pending.told_here = True
            self.told = True
            return new

    def lone(self, kind: str | None = None) -> Pending | None:
        """The step (of ``kind``) that is all there is to do, if so it is and nobody was told to do
        it."""
        with self._changed:
            if len(self.pending) != 1 or self._main.running() != 1:
                return None
            pending = next(iter(self.pending.values()))
            return None if self._open or kind not in (None, pending.kind) else pending

    def take_notes(self) -> list[Known]:
        """What was noted since (see :meth:`note`), to be recorded."""
        with self._changed:
            notes, self._notes = self._notes, []
        return notes

    # -- the program's side

    def key_of(self, place: Place, ask: Ask) -> str:
        return ask.key or f"{place.path}!{ask.kind}.{place.number(ask.kind)}"

    def step(self, place: Place, ask: Ask) -> Any:
        """The value of a step, for a thread. Raises what it raised."""
        done = threading.Event()
        claimed = self._claim(place, ask, done.set)
        if isinstance(claimed, Pending):
            done.wait()
        return self._deliver(place, claimed, ask)

    async def astep(self, place: Place, ask: Ask) -> Any:
        """Twin of :meth:`step`."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(lambda: done.done() or done.set_result(None))

        claimed = self._claim(place, ask, wake)
        if isinstance(claimed, Pending):
            await done
        return self._deliver(place, claimed, ask)

    def note(self, place: Place, kind: str, make: Callable[[], Any]) -> Any:
        """The value of ``make``, which is called once in a run. It is recorded with the next plan:
        for what is cheap and has no effect that matters."""
        key = f"{place.path}!{kind}.{place.number(kind)}"
        known = self._claim_known(key)
        if known is None:
            outcome = self.perform(make, f"{kind} of {self.run}", (), 0.0)
            self.record_note(key, outcome)
        else:
            outcome = known.outcome
        return self._value(outcome, key, ())

    def note_found(self, place: Place, kind: str, look: Callable[[], Any]) -> Any:
        """What ``look`` finds, once in a run; None if it finds nothing, which needs no record: what
        the strand did next tells that it was here."""
        key = f"{place.path}!{kind}.{place.number(kind)}"
        known = self._claim_known(key)
        if known is None:
            found = None if self.is_replaying(place.strand) else look()
            if found is None:
                return None
            outcome = self.perform(lambda: found, f"the {kind}", (), 0.0)
            self.record_note(key, outcome)
        else:
            outcome = known.outcome
        return self._value(outcome, key, ())

    def _claim_known(self, key: str) -> Known | None:
        with self._changed:
            if self.unwound:
                raise Unwound
            known = self._known.get(key)
            if known is not None and key not in self._claimed:
                self._count_ahead(key, -1)
            self._claimed.add(key)
            return known

    def _claim(self, place: Place, ask: Ask, wakes: Callable[[], None]) -> Pending | Known:
        from dapr_runners.crewai._requests import request

        before: Request | None = place.strand.last_request if ask.kind == "llm" else None
        asked = request(ask.head, ask.messages, before)
        key = self.key_of(place, ask)
        known = self._claim_known(key)
        if known is not None and known.digest not in (None, asked.digest):
            self._mismatch(key, ask, asked.difference(known.request or {}, before))
        if ask.kind == "llm":
            place.strand.last_request = asked
        if known is not None and known.outcome is not None:
            return known
        pending = Pending(
            key, ask.kind, ask.name, asked, ask.asked, ask.execute, contextvars.copy_context(),
            wakes, ask.hints, min((budget.left for budget in budgets.get()), default=None),
        )  # fmt: skip
        with self._changed:
            if self.unwound:
                raise Unwound
            if known is not None and known.outcome is not None:
                return known
            self.pending[key] = pending
            self._moves += 1
            late, self.told = self.told and known is None, False
            self._changed.notify_all()
        if late:
            self._wake()
        return pending

    def _mismatch(self, key: str, ask: Ask, diff: str) -> None:
        error = StepMismatchError(run_id=self.run, step=ask.name, diff=f"\n{diff}\n")
        if not self._accepts_mismatch:
            raise Ending(error)
        logger.warning("accepted: %s (%s)", error, key)

    def _deliver(self, place: Place, claimed: Pending | Known, ask: Ask) -> Any:
        outcome = claimed.outcome
        if outcome is None:
            raise Unwound
        ran_here = isinstance(claimed, Pending) and claimed.ran_here
        if ask.on_delivery is not None and not ran_here:
            ask.on_delivery(outcome)
        for budget in budgets.get():
            budget.spend(outcome.took)
        clock: float = self.local.get("clock", 0.0)
        self.local["clock"] = max(clock, outcome.ended)
        return self._value(outcome, claimed.key, ask.hints)

    def _value(self, outcome: Outcome | None, key: str, hints: tuple[Any, ...]) -> Any:
        assert outcome is not None
        value = self.types.codec_with(*hints).decode(outcome.data, key)
        if outcome.kind == "fatal":
            raise Ending(value)
        if outcome.kind == "error":
            raise value
        return value

    # -- the engine's side

    def settle_down(self) -> str:
        """Wait until the program has ended (``done``), every strand waits for a step (``parked``),
        or it asks for steps while some strand computes for long (``busy``)."""
        with self._changed:
            while True:
                if self.finished or self.unwound:
                    return "done"
                if self.pending and len(self.pending) >= self._main.running():
                    return "parked"
                moves = self._moves
                if self._changed.wait(_GRACE if self.pending else 60.0):
                    continue
                if self.pending and moves == self._moves:
                    return "busy"

    def find(self, key: str, seconds: float) -> Pending | None:
        """The pending step ``key``, waited for; None when the program does not ask for it."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while key not in self.pending:
                left = deadline - time.monotonic()
                if self.finished or self.unwound or left <= 0:
                    return None
                self._changed.wait(left)
            return self.pending[key]

    def run_pending(
        self,
        pending: Pending,
        chunks: Chunks,
        attempt: int = 1,
        order: tuple[int, ...] = (0, 1),
        watch: Watch | None = None,
    ) -> Outcome:
        """Perform a pending step in this thread. Its outcome is not delivered yet. ``chunks`` are
        told what its model says, ``watch`` of the attempt. ``order`` grows with each attempt that
        follows a failed one."""
        pending.executing = True
        usage: Counter[str] = Counter()

        def execute() -> Any:
            inside_step.set(True)
            usage_of_step.set(usage)
            listening.set((chunks, pending.key))
            try:
                with running(step):
                    return pending.execute()
            except BaseException as error:
                if watched is not None:
                    watched.ended(error)
                raise

        watched = None if watch is None else watch.begin(pending.key, pending.key, pending.name)
        step = self._step_of(pending.key, attempt, name=pending.name, order=order, watched=watched)
        context = pending.context.copy()
        began = time.time()
        outcome = self.perform(
            lambda: context.run(execute), f"what {pending.name} returned", pending.hints, began
        )
        if watched is not None:
            watched.ended()
        outcome.usage = {name: count for name, count in usage.items() if count} or None
        if outcome.kind == "value" and (notes := messages_of(step)) is not None:
            notes.complete()
            outcome.messages = cast(Notes, notes).made({})
        pending.ran_here = True
        return outcome

    def perform(
        self, make: Callable[[], Any], where: str, hints: tuple[Any, ...], began: float
    ) -> Outcome:
        """What ``make`` returns or raises, encoded."""
        kind = "value"
        try:
            value = make()
        except Exception as error:
            kind, value = "fatal" if isinstance(error, _FINAL) else "error", error
        ended = time.time()
        try:
            data = self.types.codec_with(*hints).encode(value, where)
        except UnstorableValueError as error:
            kind, data = "fatal", self.types.codec.encode(error)
        return Outcome(kind, data, round(ended - began, 3) if began else 0.0, round(ended, 3))


def _is_replaying() -> bool:
    """Whether this code was at this place before, in the program that recorded it."""
    place = here.get()
    return place is not None and place.driver.is_replaying(place.strand)
