"""The effect that is carried out right now, for its function to read."""

from contextvars import ContextVar
from dataclasses import dataclass

from dapr_runners.effects._record import EffectRecord


@dataclass(frozen=True, slots=True)
class CurrentEffect:
    """An effect: its ``name``, the ``attempt`` at it, from 1, and its ``record`` as it began."""

    name: str
    record: EffectRecord

    @property
    def attempt(self) -> int:
        """Number of the attempt, from 1."""
        return self.record.attempt

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this effect, and for no other one (32 hex digits)."""
        return self.record.idempotency_key

    @property
    def fencing_token(self) -> int:
        """Higher than that of any attempt before: a system that is given it can refuse what comes
        with a lower one."""
        return self.record.fencing_token


running_effect: ContextVar[CurrentEffect | None] = ContextVar("dapr_runners_effect", default=None)


def current_effect() -> CurrentEffect | None:
    """The effect whose function calls this; None outside of one, and where an ``@effect`` is called
    outside of a recorded step."""
    return running_effect.get()
