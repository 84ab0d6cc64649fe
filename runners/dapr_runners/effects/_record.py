"""The record of an effect, and what may follow what in it."""

from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, cast

from dapr_runners.effects.errors import IllegalTransitionError
from dapr_runners.engine import Json
from dapr_runners.state import Codec, CorruptRecordError


class EffectStatus(StrEnum):
    """How far an effect is."""

    PENDING = "pending"
    """To be carried out: it is known that it has not been."""
    CLAIMED = "claimed"
    """A worker is about to carry it out, and has not begun."""
    EXECUTING = "executing"
    """It has begun."""
    SUCCEEDED = "succeeded"
    """It has happened. Nothing follows."""
    FAILED = "failed"
    """Its function raised."""
    UNKNOWN = "unknown"
    """It had begun when its worker was lost: nobody here knows whether it has happened."""


_S = EffectStatus
_FOLLOWING: dict[EffectStatus, frozenset[EffectStatus]] = {
    _S.PENDING: frozenset((_S.CLAIMED,)),
    # claimed by the next one, when its owner is gone
    _S.CLAIMED: frozenset((_S.CLAIMED, _S.EXECUTING)),
    # executing still, when its lease is renewed
    _S.EXECUTING: frozenset((_S.EXECUTING, _S.SUCCEEDED, _S.FAILED, _S.UNKNOWN)),
    _S.FAILED: frozenset((_S.CLAIMED, _S.SUCCEEDED, _S.UNKNOWN)),
    # unknown still, when it is to be reconciled again
    _S.UNKNOWN: frozenset((_S.UNKNOWN, _S.CLAIMED, _S.PENDING, _S.SUCCEEDED, _S.FAILED)),
    _S.SUCCEEDED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRecord:
    """What is recorded of one effect.

    ``step_id`` is the key of its step in ``run_id``, ``attempt_id`` names the last attempt at it,
    number ``attempt`` from 1. ``idempotency_key`` is the same for all attempts.
    ``lease_expiration`` and the times are seconds since the epoch. ``fencing_token`` grows with
    each claim, and when an attempt is found lost. ``result_reference`` is the state key that holds
    its result. ``error`` says what went wrong last. ``decisions`` are those of people: ``what``,
    ``who``, ``why``, ``at``.
    """

    run_id: str
    step_id: str
    effect: str
    idempotency_key: str
    tenant_id: str = ""
    graph_version: str = ""
    fingerprint: str = ""
    execution_status: EffectStatus = EffectStatus.PENDING
    attempt: int = 0
    attempt_id: str = ""
    lease_owner: str = ""
    lease_expiration: float = 0.0
    fencing_token: int = 0
    result_reference: str | None = None
    created_at: float = 0.0
    started_at: float | None = None
    updated_at: float = 0.0
    finished_at: float | None = None
    error: str | None = None
    decisions: tuple[Json, ...] = ()
    result: bytes | None = field(default=None, repr=False)
    """The result, encoded."""
    exception: bytes | None = field(default=None, repr=False)
    """What is raised in place of a result, encoded."""
    order: tuple[int, ...] = field(default=(), repr=False)
    """Which attempt of its step the last attempt belongs to."""

    def changed(self, status: EffectStatus, **changes: Any) -> "EffectRecord":
        """This record, gone on to ``status``. Raises :class:`IllegalTransitionError` where that
        does not follow, or if the token would not grow as it must."""
        after = replace(self, execution_status=status, **changes)
        grows = status in (_S.CLAIMED, _S.UNKNOWN)
        is_next = after.fencing_token > self.fencing_token
        same = after.fencing_token == self.fencing_token
        if status not in _FOLLOWING[self.execution_status] or not (is_next if grows else same):
            raise IllegalTransitionError(
                effect=self.effect,
                idempotency_key=self.idempotency_key,
                before=f"{self.execution_status.name} (token {self.fencing_token})",
                after=f"{status.name} (token {after.fencing_token})",
            )
        return after

    def pack(self, codec: Codec) -> bytes:
        plain = asdict(self)
        plain["execution_status"] = self.execution_status.value
        plain["decisions"], plain["order"] = list(self.decisions), list(self.order)
        return codec.encode_plain(plain, "the record of an effect")

    @classmethod
    def unpack(cls, codec: Codec, data: bytes, key: str) -> "EffectRecord":
        plain = codec.decode(data, key)
        if not isinstance(plain, dict) or "idempotency_key" not in plain:
            raise CorruptRecordError(key=key, reason="it is not the record of an effect")
        known = {item.name for item in fields(cls)}
        values = {k: v for k, v in cast(Json, plain).items() if k in known}
        values["execution_status"] = EffectStatus(values["execution_status"])
        values["decisions"], values["order"] = tuple(values["decisions"]), tuple(values["order"])
        return cls(**values)
