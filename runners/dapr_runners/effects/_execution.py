"""One call of an effect: claim it or replay it, carry it out, record what came of it."""

import inspect
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

from dapr_runners._current_step import Lease, running_lease
from dapr_runners.effects._current import CurrentEffect, running_effect
from dapr_runners.effects._keys import fingerprint, key_text
from dapr_runners.effects._reconcile import NOT_DONE, STILL_UNKNOWN, Answer, Done, Reconcile
from dapr_runners.effects._record import EffectRecord, EffectStatus
from dapr_runners.effects._records import EffectRecords, Found
from dapr_runners.effects._renewals import Renewal, renewals
from dapr_runners.effects._step import Effects, Entry
from dapr_runners.effects.errors import (
    EffectUnknownError,
    LeaseLostError,
    NestedEffectError,
    UnstorableResultError,
)
from dapr_runners.engine import IO, Abandons, BlockingIO, Breaks, Halt, Parks, run_in_thread
from dapr_runners.state import (
    CorruptRecordError,
    EncryptionError,
    SidecarUnreachableError,
    StateStoreError,
    UnstorableValueError,
    is_lasting,
)

logger = logging.getLogger("dapr_runners")
T = TypeVar("T")
OnUnknown: TypeAlias = Literal["reconcile", "retry", "ask", "fail"]

_S = EffectStatus
_BEFORE, _AFTER = 30.0, 600.0
"""Seconds for which the store is asked again: before an effect, and after it has happened."""
_RECONCILE_PAUSES = (0.5, 1.0, 2.0)
"""Seconds between the attempts at a reconcile function that raises."""
_NOBODY_ASKED = "An @effect with reconcile= finds out by itself."
_ASK_AGAIN = "Or have its reconcile function asked once more: `dapr-runners dead-letter reconcile`."
_NOT_KNOWN = "whether it has happened is not known"


@dataclass(frozen=True, slots=True)
class Declared:
    """An effect, as its program declares it."""

    name: str
    function: Callable[..., Any]
    signature: inspect.Signature
    reconcile: Reconcile | None
    on_unknown: OnUnknown
    key: Callable[..., object] | None
    lease: float


class Execution:
    """One call of ``declared`` in a step with ``effects``. Its coroutines never suspend on an
    :class:`IO` for threads."""

    def __init__(self, declared: Declared, effects: Effects, args: Any, kwargs: Any) -> None:
        if (outer := running_effect.get()) is not None:
            raise NestedEffectError(effect=declared.name, inside=outer.name)
        self._declared = declared
        self._effects = effects
        self._codec = effects.host.codec
        self._fingerprint = fingerprint(declared.signature, args, kwargs, self._codec)
        self._given = None
        if declared.key is not None:
            self._given = key_text(declared.name, declared.key(*args, **kwargs))
        self._attempt_id = uuid.uuid4().hex[:16]
        self._entry: Entry
        self._ours: EffectRecord
        self.replayed: Callable[[], Any]
        """What an earlier attempt led to."""

    @contextmanager
    def guarded(self) -> Generator[None]:
        """Around all of it: what ends the step ends it whatever its code makes of it."""
        self._effects.check()
        try:
            yield
        except Halt as halt:
            self._effects.halt(halt)
            raise

    # -- before

    async def open(self, io: IO) -> bool:
        """Whether the function is to be called now; if not, :attr:`replayed` has its result."""
        declared, effects = self._declared, self._effects
        self._entry = await _steadily(
            io,
            lambda: effects.entry(declared.name, self._fingerprint, self._given, io),
            _BEFORE,
        )
        pause = 0.02
        while True:
            claim = await _steadily(io, lambda: self._claim(io), _BEFORE)
            if claim == "replay":
                return False
            if isinstance(claim, Found):
                begun: Found | None = claim
                if claim.record.execution_status is _S.CLAIMED:
                    begun = await self._begin(claim, io)
                if begun is not None:
                    self._ours = begun.record
                    return True
            elif claim == "wait":
                await io.sleep(pause)
                pause = min(pause * 1.5, 1.0)

    async def _claim(self, io: IO) -> Found | Literal["replay", "wait", "again"]:
        records, entry, declared = self._records(io), self._entry, self._declared
        found = None
        if entry.number is not None or self._given is not None:
            found = await records.read(self._effects.run, entry.key)
        if found is None and entry.is_begun:
            found = await records.lost(self._new(), entry.token)
        if found is None:
            marker = self._effects.marker(entry, 1)
            claim = await records.create(self._new(), declared.lease, self._attempt_id, marker)
            entry.is_begun = claim is not None
            return claim or "again"
        record = found.record
        if record.fingerprint != self._fingerprint:
            raise self._effects.mismatch(declared.name, entry.key)
        match record.execution_status:
            case _S.SUCCEEDED:
                self._replay(record)
                return "replay"
            case _S.FAILED if not self._may_run_again(record):
                self._replay(record)
                return "replay"
            case _S.CLAIMED | _S.EXECUTING if record.attempt_id == self._attempt_id:
                return found  # it was written by a call that seemed to have failed
            case _S.CLAIMED | _S.EXECUTING if records.has_owner(record):
                return "wait"
            case _S.EXECUTING:
                await records.orphan(found, "its worker was lost, or its lease ran out")
                return "again"
            case _S.UNKNOWN:
                return await self._resolve(found, io)
            case _S.FAILED if declared.reconcile is not None:
                # It raised, which need not mean that nothing has happened.
                return await self._reconcile(found, io)
            case _:
                return await self._reclaim(found, io)

    def _new(self) -> EffectRecord:
        effects = self._effects
        return EffectRecord(
            run_id=effects.run,
            step_id=effects.step,
            effect=self._declared.name,
            idempotency_key=self._entry.key,
            tenant_id=effects.tenant,
            graph_version=effects.host.version,
            fingerprint=self._fingerprint,
            order=effects.order_now(),
        )

    def _may_run_again(self, record: EffectRecord) -> bool:
        """Whether this is a later attempt at its step than the one that it failed in, and the step
        had not gone on after that."""
        return not self._entry.handled and self._effects.order_now() > record.order

    async def _reclaim(self, found: Found, io: IO) -> Found | Literal["again"]:
        order = self._effects.order_now()
        claim = await self._records(io).claim(found, self._declared.lease, self._attempt_id, order)
        if claim is None:
            return "again"
        marker = self._effects.marker(self._entry, claim.record.fencing_token)
        await io.put_many({marker.key: marker.data})
        return claim

    async def _begin(self, claim: Found, io: IO) -> Found | None:
        return await _steadily(
            io, lambda: self._records(io).begin(claim, self._declared.lease), _BEFORE
        )

    # -- unknown outcomes

    async def _resolve(self, found: Found, io: IO) -> Found | Literal["again"]:
        match self._declared.on_unknown:
            case "retry":
                return await self._reclaim(found, io)
            case "reconcile":
                return await self._reconcile(found, io)
            case "fail":
                raise EffectUnknownError(
                    run_id=self._effects.run,
                    step=self._effects.name,
                    effect=self._declared.name,
                    idempotency_key=self._entry.key,
                    reason=found.record.error or _NOT_KNOWN,
                    advice=self._advice(),
                )
            case "ask":
                raise self._parks(found.record)

    async def _reconcile(self, found: Found, io: IO) -> Found | Literal["again"]:
        answer, said = await self._ask(found.record, io)
        records = self._records(io)
        if isinstance(answer, Done):
            result, exception, text = self._packed(answer.value)
            await records.settle(found, result, exception, text)
            return "again"
        if answer is NOT_DONE:
            return await self._reclaim(found, io)
        is_unknown = found.record.execution_status is _S.UNKNOWN
        before = (found.record.error or _NOT_KNOWN).removesuffix(f"; {said}")
        why = f"{'' if is_unknown else 'it raised '}{before}; {said}"
        if not is_unknown and await records.orphan(found, why) is None:
            return "again"
        raise self._parks(found.record, why)

    async def _ask(self, record: EffectRecord, io: IO) -> tuple[Done | Answer, str]:
        """What the reconcile function answers, and why nothing is known if that is all; the same
        if it raises over and over."""
        reconcile = self._declared.reconcile
        assert reconcile is not None
        for pause in (*_RECONCILE_PAUSES, None):
            try:
                answer: Any = reconcile(self._entry.key, record)
                if inspect.isawaitable(answer):
                    answer = await answer
            except Exception as error:
                logger.warning("reconciling %s: %r", self._declared.name, error)
                if pause is None:
                    return STILL_UNKNOWN, f"reconcile raised {error!r}"
                await io.sleep(pause)
                continue
            if isinstance(answer, (Done, Answer)):
                return answer, "reconcile answered STILL_UNKNOWN"
            return STILL_UNKNOWN, (
                f"reconcile returned {answer!r}, which is neither done(value), NOT_DONE nor"
                " STILL_UNKNOWN"
            )
        raise AssertionError

    def _parks(self, record: EffectRecord, error: str | None = None) -> Parks:
        return Parks(
            {
                "kind": "effect",
                "effect": self._declared.name,
                "idempotency_key": self._entry.key,
                "step_id": self._effects.step,
                "tenant_id": self._effects.tenant,
                "error": error or record.error or _NOT_KNOWN,
                "reconciles": self._declared.on_unknown == "reconcile",
                "advice": self._advice(),
            }
        )

    def _advice(self) -> str:
        if self._declared.reconcile is None:
            return _NOBODY_ASKED
        return _ASK_AGAIN if self._declared.on_unknown == "reconcile" else ""

    # -- in between

    @contextmanager
    def running(self) -> Generator[None]:
        """Around the function."""
        ours, lease = self._ours, self._declared.lease
        records = self._records(self._effects.host.io(BlockingIO))
        renewal = Renewal(lease, lambda: run_in_thread(records.renew(ours, lease)) is not None)
        renewals().keep(renewal)
        effect = running_effect.set(CurrentEffect(self._declared.name, ours))
        held = running_lease.set(Lease(ours.lease_owner, ours.lease_expiration, ours.fencing_token))
        try:
            yield
        finally:
            renewal.over = True
            running_lease.reset(held)
            running_effect.reset(effect)

    # -- after

    async def succeeded(self, value: Any, io: IO) -> None:
        """The function has returned ``value``. One that cannot be stored ends the run, and so does
        the record: the effect has happened."""
        result, exception, text = self._packed(value)
        try:
            counts = await self._finish(
                io, lambda r: r.succeed(self._ours, result, exception, text)
            )
        except StateStoreError as refused:  # it is too large, say
            error = self._unstorable(
                f"what {self._declared.name!r} returned",
                type(value).__name__,
                str(refused).removesuffix("."),
                "Return less: a reference to it, for instance.",
            )
            result, exception, text = None, self._codec.encode(error, "the error"), str(error)
            counts = await self._finish(
                io, lambda r: r.succeed(self._ours, result, exception, text)
            )
        if not counts:
            self._lost()
        if exception is not None:
            raise Breaks(self._codec.decode(exception, "the error"))

    async def raised(self, error: BaseException, io: IO) -> None:
        """The function has raised ``error``, or was cut short by it."""
        if isinstance(error, Exception):
            data = self._codec.encode(error, "the error")
            text = f"{type(error).__name__}: {error}"
            counts = await self._finish(io, lambda r: r.fail(self._ours, data, text))
            self._effects.raised(self._entry)
        else:
            text = f"it was cut short by {type(error).__name__}"
            counts = await self._finish(io, lambda r: r.doubt(self._ours, text))
        if not counts:
            self._lost()

    async def _finish(self, io: IO, change: Callable[[EffectRecords], Awaitable[bool]]) -> bool:
        return await _steadily(io, lambda: change(self._records(io)), _AFTER, lasting=True)

    def _packed(self, value: Any) -> tuple[bytes | None, bytes | None, str | None]:
        """``value`` encoded, or what is to be raised in its place, and the text of that."""
        try:
            return self._codec.encode(value, f"what {self._declared.name!r} returned"), None, None
        except UnstorableValueError as refused:
            error = self._unstorable(
                refused.where, refused.type_name, refused.reason, refused.remedy
            )
            return None, self._codec.encode(error, "the error"), str(error)

    def _unstorable(
        self, where: str, type_name: str, reason: str, remedy: str
    ) -> UnstorableResultError:
        return UnstorableResultError(
            where=where,
            type_name=type_name,
            reason=reason,
            remedy=remedy,
            effect=self._declared.name,
            idempotency_key=self._entry.key,
        )

    def _replay(self, record: EffectRecord) -> None:
        codec, effects, entry = self._codec, self._effects, self._entry
        where = f"the result of {self._declared.name!r}"

        def replayed() -> Any:
            if record.exception is not None:
                error = codec.decode(record.exception, where)
                if record.execution_status is _S.SUCCEEDED:
                    raise Breaks(error)
                effects.raised(entry)
                raise error
            assert record.result is not None
            return codec.decode(record.result, where)

        self.replayed = replayed

    def _records(self, io: IO) -> EffectRecords:
        return EffectRecords(io, self._codec)

    def _lost(self) -> NoReturn:
        error = LeaseLostError(
            run_id=self._effects.run,
            step=self._effects.name,
            effect=self._declared.name,
            lease=self._declared.lease,
        )
        raise Abandons(error, is_stale=True)


async def _steadily(
    io: IO, ask: Callable[[], Awaitable[T]], seconds: float, *, lasting: bool = False
) -> T:
    """What ``ask`` gives, asked again while the store is away. A fault of the store that stays is
    none of the step's own; with ``lasting``, one that asking again cannot mend is raised as it
    is."""
    give_up_at = time.monotonic() + seconds
    pause = 0.05
    while True:
        try:
            return await ask()
        except (CorruptRecordError, EncryptionError) as error:
            raise Abandons(error) from error
        except (SidecarUnreachableError, StateStoreError) as error:
            if is_lasting(error) and lasting:
                raise
            if is_lasting(error) or time.monotonic() > give_up_at:
                raise Abandons(error) from error
            logger.warning("recording an effect: %s", error)
        await io.sleep(pause)
        pause = min(pause * 2, 1.0)
