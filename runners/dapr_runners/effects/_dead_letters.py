"""What waits for somebody's decision: listed, and retried, resolved or dropped."""

import logging
import time
from dataclasses import dataclass, field, fields
from typing import Any

from dapr_runners.effects._record import EffectRecord, EffectStatus
from dapr_runners.effects._records import EffectRecords, Found
from dapr_runners.effects.errors import (
    DeadLetterDecidedError,
    DeadLetterNotFoundError,
    DecisionRefusedError,
    EffectDroppedError,
    MessageRefusedError,
    RunEndedError,
)
from dapr_runners.engine import (
    FAILED,
    IO,
    PARKED,
    UNSENT,
    BlockingIO,
    Delivery,
    Json,
    Letters,
    NotTaken,
    PatientIO,
    Progress,
    Telling,
    Turns,
    Unreadable,
    Worker,
    end_key,
    mark_of,
    no_base,
    process_worker,
    resolved_key,
    restart,
    run_in_thread,
    tenant_mark,
    unpacked,
)
from dapr_runners.state import UNREADABLE, AllowList, Codec, StateStore, sidecar_address

logger = logging.getLogger("dapr_runners")

_PATIENCE = 3.0


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What waits for a decision.

    ``kind``: ``"effect"`` (nobody knows whether it has happened; its run is parked), ``"poison"``
    (the step has taken its workers down), ``"retries"`` (the step has failed in all its attempts;
    of these two, the run has failed) or ``"message"`` (a message of the step was refused by
    ``destination``; its run has gone on). ``step`` is the step's name, ``step_id`` its key
    in the run. ``time`` is in seconds since the epoch. ``effect``, ``idempotency_key`` and
    ``record`` are set for an effect.
    """

    id: str
    kind: str
    runner: str
    run_id: str
    step: str
    step_id: str
    attempts: int
    error: str
    time: float
    effect: str | None = None
    idempotency_key: str | None = None
    tenant_id: str = ""
    message_id: str | None = None
    destination: str | None = None
    record: EffectRecord | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody has decided on a dead letter (``letter`` is its id): ``what`` is ``"retry"``,
    ``"resolve"``, ``"drop"`` or ``"reconcile"``; ``time`` is in seconds since the epoch."""

    letter: str
    what: str
    who: str
    why: str
    time: float


class DeadLetters:
    """The dead letters of a state store; those of ``runner``, if that is named.

    They are those of ``tenant``, or of no tenant if none is named; with ``all_tenants``, all.
    ``host`` and ``port`` are the sidecar's gRPC endpoint (default: as the Dapr SDK finds it),
    ``store_name`` its state store component. A runner's ``dead_letters()`` gives its own. Every
    decision is recorded with ``who`` made it, and ``why``. Calls block.
    """

    def __init__(
        self,
        *,
        store_name: str = "statestore",
        host: str | None = None,
        port: str | int | None = None,
        runner: str | None = None,
        tenant: str | None = None,
        all_tenants: bool = False,
        store: StateStore | None = None,
        codec: Codec | None = None,
        worker: Worker | None = None,
    ) -> None:
        store = store or StateStore(store_name, address=sidecar_address(host, port))
        self._io: IO = PatientIO(BlockingIO(store), store.address, _PATIENCE)
        self._codec = codec or Codec(AllowList())
        self._worker = worker or process_worker(store.address)
        self._runner = runner
        self._mark = None if all_tenants else tenant_mark(tenant)
        self._letters = Letters()
        self._records = EffectRecords(self._io, self._codec)
        self._delivery = Delivery(store)

    # -- reading

    def list(
        self, *, run_id: str | None = None, unreadable: Unreadable | None = None
    ) -> list[DeadLetter]:
        """Those there are (of a run), oldest first. Of one that cannot be read, ``unreadable`` is
        told; by default, a warning is logged."""
        return run_in_thread(self._list(run_id, unreadable or _warn))

    def get(self, letter: str) -> DeadLetter:
        """The one whose id is ``letter``, with the record of its effect. Raises
        :class:`DeadLetterNotFoundError`."""
        return run_in_thread(self._get(letter))

    def decisions(self, run_id: str) -> "list[Decision]":
        """What was decided on the letters of a run, oldest first. Purged with the run."""
        if not self._may_see(run_id):
            return []
        found = run_in_thread(self._letters.decisions(self._io, run_id))
        return [
            Decision(each["letter"], each["what"], each["who"], each["why"], each["at"])
            for each in found
        ]

    # -- deciding

    def retry(self, letter: str, *, who: str, why: str) -> None:
        """It has not happened: carry the effect out again, with the same idempotency key. Of a run
        that has failed: start it again with the step that it failed of. Send a message now, under
        its id; raises :class:`MessageRefusedError` when it is not taken."""
        run_in_thread(self._decide(letter, _decision(letter, "retry", who, why)))

    def resolve(self, letter: str, value: Any, *, who: str, why: str) -> None:
        """It has happened, and gave ``value``. Of a run that has failed: start it again, with
        ``value`` as what the failed step gives, which is not run."""
        run_in_thread(self._decide(letter, _decision(letter, "resolve", who, why), value))

    def drop(self, letter: str, *, who: str, why: str) -> None:
        """Give it up: the effect raises :class:`EffectDroppedError` in its step. Of a run that has
        failed, nothing changes but that the letter is gone."""
        run_in_thread(self._decide(letter, _decision(letter, "drop", who, why)))

    def reconcile(self, letter: str, *, who: str, why: str) -> None:
        """Ask the effect's reconcile function again, in its step: the run goes on if it answers,
        and is parked again, with a new letter under the same id, if it does not."""
        run_in_thread(self._decide(letter, _decision(letter, "reconcile", who, why)))

    def reconcile_run(self, run_id: str, *, who: str, why: str) -> "list[str]":
        """:meth:`reconcile` each letter of the effects that a run is parked with: their ids.
        Raises :class:`DeadLetterNotFoundError` when there are none."""
        found = [each.id for each in self.list(run_id=run_id) if each.kind == "effect"]
        if not found:
            raise DeadLetterNotFoundError(letter=run_id)
        for letter in found:
            self.reconcile(letter, who=who, why=why)
        return found

    async def _list(self, run_id: str | None, unreadable: Unreadable) -> "list[DeadLetter]":
        found: list[DeadLetter] = []
        for run, at in await self._letters.all(self._io):
            if run_id not in (None, run) or not self._may_see(run):
                continue
            try:
                plain = await self._letters.get(self._io, run, at)
            except UNREADABLE as error:  # the others are listed
                unreadable(f"{run}/{at}", error)
                continue
            if plain is None or self._runner not in (None, plain["runner"]):
                continue
            if at.startswith(PARKED) and "decision" in plain:
                continue  # its run has only to go on
            found.append(_letter(f"{run}/{at}", plain))
        return found

    async def _get(self, letter: str) -> DeadLetter:
        plain = await self._plain(letter)
        found = await self._record(plain)
        return _letter(letter, plain, None if found is None else found.record)

    def _may_see(self, run: str) -> bool:
        return self._mark in (None, mark_of(run))

    async def _plain(self, letter: str) -> Json:
        run, _, at = letter.partition("/")
        if not (self._may_see(run) and at.startswith((PARKED, FAILED, UNSENT))):
            raise DeadLetterNotFoundError(letter=letter)
        plain = await self._letters.get(self._io, run, at)
        if plain is None or self._runner not in (None, plain["runner"]):
            raise DeadLetterNotFoundError(letter=letter)
        return plain

    async def _record(self, plain: Json) -> Found | None:
        key = plain.get("idempotency_key")
        return None if key is None else await self._records.read(plain["run_id"], key)

    async def _decide(self, letter: str, decision: Json, value: Any = None) -> None:
        plain = await self._plain(letter)
        at = letter.partition("/")[2]
        if decision["what"] == "reconcile" and not plain.get("reconciles"):
            raise DecisionRefusedError(
                letter=letter, reason="it has no reconcile function that could be asked"
            )
        if plain["kind"] == "effect":
            await self._decide_effect(letter, at, plain, decision, value)
        elif plain["kind"] == "message":
            await self._decide_message(letter, at, plain, decision)
        else:
            await self._decide_run(letter, at, plain, decision, value)

    # -- messages

    async def _decide_message(self, letter: str, at: str, plain: Json, decision: Json) -> None:
        io, run = self._io, plain["run_id"]
        if decision["what"] == "resolve":
            raise DecisionRefusedError(
                letter=letter, reason="a message gives no value, it can be retried or dropped"
            )
        await self._letters.change(io, run, at, decision=decision)
        if decision["what"] == "retry":
            message = unpacked(plain["message"])
            try:
                await io.call(lambda: self._delivery.deliver(message))
            except NotTaken as refused:
                to, reason = plain["destination"], refused.reason
                tried = plain["attempts"] + 1
                await self._letters.change(io, run, at, attempts=tried, error=f"{to}: {reason}")
                raise MessageRefusedError(letter=letter, to=to, reason=reason) from refused
        await self._letters.decided(io, run, at, decision)
        await self._letters.remove(io, run, at)

    # -- effects

    async def _decide_effect(
        self, letter: str, at: str, plain: Json, decision: Json, value: Any
    ) -> None:
        io, run = self._io, plain["run_id"]
        turns = self._turns(plain)
        telling = Telling(plain["runner"], lambda: self._worker.client, turns)
        if decision["what"] != "drop" and await turns.progress(io, run) is not Progress.ACTIVE:
            raise RunEndedError(run_id=run, letter=letter)
        await telling.untold.add(io, run, at)  # whoever works tells it, should this process die
        await self._change(letter, plain, decision, value)
        await self._letters.decided(io, run, at, decision)
        await self._letters.change(io, run, at, decision=decision)
        if await io.get(end_key(run)) is None:
            await telling.answered(io, run, at)
        else:  # it was cancelled, or has failed: nobody waits for the decision
            await telling.untold.remove(io, run, at)
            await self._letters.remove(io, run, at)

    async def _change(self, letter: str, plain: Json, decision: Json, value: Any) -> None:
        while True:
            found = await self._record(plain)
            if found is None:
                raise DeadLetterNotFoundError(letter=letter)
            record = found.record
            if record.decisions and record.decisions[-1] == decision:
                return
            if record.execution_status is not EffectStatus.UNKNOWN:
                raise DeadLetterDecidedError(letter=letter, status=record.execution_status.value)
            match decision["what"]:
                case "retry":
                    changed = await self._records.release(found, decision)
                case "reconcile":
                    changed = await self._records.question(found, decision)
                case "resolve":
                    data = self._codec.encode(value, "the value")
                    changed = await self._records.settle(found, data, decision=decision)
                case _:
                    error = EffectDroppedError(
                        run_id=record.run_id,
                        step=plain["step"],
                        effect=record.effect,
                        who=decision["who"],
                        why=decision["why"],
                    )
                    data = self._codec.encode(error, "the error")
                    changed = await self._records.give_up(found, data, str(error), decision)
            if changed is not None:
                return

    # -- runs that have failed

    async def _decide_run(
        self, letter: str, at: str, plain: Json, decision: Json, value: Any
    ) -> None:
        io, run, step = self._io, plain["run_id"], plain["step_id"]
        given: dict[str, bytes] = {}
        if decision["what"] == "resolve":
            if not step:
                raise DecisionRefusedError(
                    letter=letter,
                    reason="it has failed between two steps, it can be retried or dropped",
                )
            given[resolved_key(run, step)] = self._codec.encode(value, "the value")
        if decision["what"] != "drop":
            await restart(
                io,
                self._worker.client,
                self._turns(plain),
                self._codec,
                plain["runner"],
                run,
                plain["undo"],
                plain.get("reset", []),
                given,
                self._worker.address,
            )
        await self._letters.decided(io, run, at, decision)
        await self._letters.remove(io, run, at)

    def _turns(self, plain: Json) -> Turns:
        mark = mark_of(plain["run_id"])
        return Turns(plain["runner"], self._codec, lambda: self._worker.client, no_base, mark)


def _warn(letter: str, error: Exception) -> None:
    logger.warning("the letter %s cannot be read: %s", letter, error)


def _decision(letter: str, what: str, who: str, why: str) -> Json:
    if not who or not why:
        raise DecisionRefusedError(letter=letter, reason="say who decides, and why")
    return {"what": what, "who": who, "why": why, "at": time.time()}


def _letter(id: str, plain: Json, record: EffectRecord | None = None) -> DeadLetter:
    names = (field.name for field in fields(DeadLetter))
    known: Json = {name: plain[name] for name in names if name in plain}
    return DeadLetter(id=id, record=record, **known)
