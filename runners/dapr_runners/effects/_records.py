"""Records of effects in the state store: every change is a compare-and-set by ETag.

Who claims an effect holds its lease: an owner, an expiry and a fencing token. Whoever finds the
lease without an owner takes the token one higher, and from then on what the owner before writes is
refused, whenever it wakes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dapr_runners.effects._record import EffectRecord, EffectStatus
from dapr_runners.engine import IO, Json, effect_key, is_dead, process_identity, watching
from dapr_runners.state import Codec

_S = EffectStatus


@dataclass(frozen=True, slots=True)
class Found:
    """A record, and the ETag it was read with."""

    record: EffectRecord
    etag: str


@dataclass(frozen=True, slots=True)
class Marker:
    """Names an effect under the step that has begun it, at the state key ``key``: a record that is
    named but missing was lost."""

    key: str
    data: bytes


class EffectRecords:
    """Reads and changes the records of effects. ``now`` gives seconds since the epoch, ``is_gone``
    whether a process is known to be dead, ``owner`` names this one."""

    def __init__(
        self,
        io: IO,
        codec: Codec,
        *,
        now: Callable[[], float] = time.time,
        is_gone: Callable[[str], bool] = is_dead,
        owner: str | None = None,
    ) -> None:
        self._io = io
        self._codec = codec
        self._now = now
        self._is_gone = is_gone
        self._owner = owner or process_identity()

    async def read(self, run: str, idempotency_key: str) -> Found | None:
        """The record of an effect, or None."""
        key = effect_key(run, idempotency_key)
        stored = await self._io.read(key)
        if stored is None:
            return None
        return Found(EffectRecord.unpack(self._codec, stored.value, key), stored.etag)

    def has_owner(self, record: EffectRecord) -> bool:
        """Whether somebody may be at it: its lease has not expired, nor is its owner seen dead."""
        return (
            record.execution_status in (_S.CLAIMED, _S.EXECUTING)
            and record.lease_expiration > self._now()
            and not self._is_gone(record.lease_owner)
        )

    # -- the owner's changes. None: somebody else was first, read again.

    async def create(
        self, record: EffectRecord, lease: float, attempt_id: str, marker: Marker
    ) -> Found | None:
        """Claim an effect that nobody has begun, for the attempt named ``attempt_id``."""
        claims = self._claim(record, lease, attempt_id)
        claimed = record.changed(_S.CLAIMED, **claims, created_at=self._now())
        data = claimed.pack(self._codec)
        key = effect_key(record.run_id, record.idempotency_key)
        created = await self._io.create_many({key: data, marker.key: marker.data})
        return await self._confirmed(claimed) if created[key] else None

    async def claim(
        self, found: Found, lease: float, attempt_id: str, order: tuple[int, ...] = ()
    ) -> Found | None:
        """Claim an effect that is pending, failed or unknown, or whose claim has no owner."""
        return await self._change(
            found,
            _S.CLAIMED,
            **self._claim(found.record, lease, attempt_id),
            order=order,
            exception=None,
            error=None,
        )

    def _claim(self, record: EffectRecord, lease: float, attempt_id: str) -> dict[str, Any]:
        return {
            "attempt": record.attempt + 1,
            "attempt_id": attempt_id,
            "lease_owner": self._owner,
            "lease_expiration": self._now() + lease,
            "fencing_token": record.fencing_token + 1,
        }

    async def begin(self, claim: Found, lease: float) -> Found | None:
        """What is claimed begins now."""
        return await self._change(
            claim,
            _S.EXECUTING,
            started_at=self._now(),
            finished_at=None,
            lease_expiration=self._now() + lease,
        )

    async def renew(self, ours: EffectRecord, lease: float) -> EffectRecord | None:
        """Keep the lease; None when it was lost."""
        renewed = await self._ours(
            ours, _S.EXECUTING, lambda: {"lease_expiration": self._now() + lease}
        )
        return None if renewed is None else renewed.record

    async def succeed(
        self,
        ours: EffectRecord,
        result: bytes | None,
        exception: bytes | None = None,
        error: str | None = None,
    ) -> bool:
        """It has happened, and gave ``result``; ``exception`` is raised in place of one that cannot
        be stored. Whether this counts: False when the lease was lost."""
        reference = effect_key(ours.run_id, ours.idempotency_key)
        return await self._finish(
            ours,
            _S.SUCCEEDED,
            result=result,
            result_reference=reference if exception is None else None,
            exception=exception,
            error=error,
        )

    async def fail(self, ours: EffectRecord, exception: bytes, error: str) -> bool:
        """Its function raised. Whether this counts."""
        return await self._finish(ours, _S.FAILED, exception=exception, error=error)

    async def doubt(self, ours: EffectRecord, error: str) -> bool:
        """Its function was cut short. Whether this counts."""
        token = ours.fencing_token + 1
        counts = await self._finish(ours, _S.UNKNOWN, fencing_token=token, error=error)
        if counts:
            _tell_unknown(ours.effect)
        return counts

    async def _finish(self, ours: EffectRecord, status: EffectStatus, **changes: Any) -> bool:
        return await self._ours(ours, status, lambda: changes, finishes=True) is not None

    # -- anybody's changes

    async def orphan(self, found: Found, why: str) -> Found | None:
        """What has begun and lost its owner is unknown from now on; what failed, too, if nobody can
        say that it has not happened all the same."""
        token = found.record.fencing_token + 1
        changed = await self._change(
            found, _S.UNKNOWN, finished_at=self._now(), fencing_token=token, error=why
        )
        if changed is not None:
            _tell_unknown(found.record.effect)
        return changed

    async def lost(self, record: EffectRecord, token: int) -> Found | None:
        """Record as unknown what was begun and whose record is missing. ``token`` is the last that
        is known of it."""
        unknown = replace(
            record,
            execution_status=_S.UNKNOWN,
            fencing_token=token + 1,
            error="its record is missing",
            created_at=self._now(),
            updated_at=self._now(),
        )
        key = effect_key(record.run_id, record.idempotency_key)
        if not await self._io.create(key, unknown.pack(self._codec)):
            return None
        _tell_unknown(record.effect)
        return await self._confirmed(unknown)

    async def settle(
        self,
        found: Found,
        result: bytes | None,
        exception: bytes | None = None,
        error: str | None = None,
        decision: Json | None = None,
    ) -> Found | None:
        """It is known after all that it has happened, and what it gave (see :meth:`succeed`)."""
        reference = effect_key(found.record.run_id, found.record.idempotency_key)
        return await self._change(
            found,
            _S.SUCCEEDED,
            finished_at=self._now(),
            result=result,
            result_reference=reference if exception is None else None,
            exception=exception,
            error=error,
            **_decided(found, decision),
        )

    async def release(self, found: Found, decision: Json) -> Found | None:
        """It is known after all that it has not happened: it may be carried out."""
        return await self._change(found, _S.PENDING, error=None, **_decided(found, decision))

    async def question(self, found: Found, decision: Json) -> Found | None:
        """It is as unknown as before, and its reconcile function is to be asked again."""
        token = found.record.fencing_token + 1
        return await self._change(
            found, _S.UNKNOWN, fencing_token=token, **_decided(found, decision)
        )

    async def give_up(
        self, found: Found, exception: bytes, error: str, decision: Json
    ) -> Found | None:
        """It is not tried again."""
        return await self._change(
            found,
            _S.FAILED,
            finished_at=self._now(),
            exception=exception,
            error=error,
            order=GIVEN_UP,
            **_decided(found, decision),
        )

    # -- how

    async def _change(self, found: Found, status: EffectStatus, **changes: Any) -> Found | None:
        changed = found.record.changed(status, updated_at=self._now(), **changes)
        key = effect_key(changed.run_id, changed.idempotency_key)
        written = await self._io.replace(key, changed.pack(self._codec), found.etag)
        if written and status is _S.EXECUTING:
            return Found(changed, "")  # what follows reads it anyway
        # Else read its ETag. A write that was refused may be ours, if its first answer was lost.
        return await self._confirmed(changed)

    async def _confirmed(self, written: EffectRecord) -> Found | None:
        found = await self.read(written.run_id, written.idempotency_key)
        return found if found is not None and found.record == written else None

    async def _ours(
        self,
        ours: EffectRecord,
        status: EffectStatus,
        changes: Callable[[], dict[str, Any]],
        finishes: bool = False,
    ) -> Found | None:
        """Change a record for as long as the lease is ours; it may be renewed meanwhile."""
        while True:
            found = await self.read(ours.run_id, ours.idempotency_key)
            if found is None or not _is_held(found.record, ours):
                return None
            more = {"finished_at": self._now()} if finishes else {}
            changed = found.record.changed(status, updated_at=self._now(), **more, **changes())
            key = effect_key(ours.run_id, ours.idempotency_key)
            if await self._io.replace(key, changed.pack(self._codec), found.etag):
                return Found(changed, "")
            again = await self.read(ours.run_id, ours.idempotency_key)
            if again is not None and again.record == changed:
                return again  # an answer was lost


GIVEN_UP = (1 << 62,)
"""The order of an attempt that none follows."""


def _is_held(record: EffectRecord, ours: EffectRecord) -> bool:
    return (
        record.execution_status is _S.EXECUTING
        and record.attempt_id == ours.attempt_id
        and record.fencing_token == ours.fencing_token
    )


def _decided(found: Found, decision: Json | None) -> dict[str, Any]:
    return {} if decision is None else {"decisions": (*found.record.decisions, decision)}


def _tell_unknown(effect: str) -> None:
    if (watcher := watching().watcher) is not None:
        watcher.unknown_effect(effect)
