"""What the outside system says of an effect whose outcome is not known here."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

from dapr_runners.effects._record import EffectRecord


@dataclass(frozen=True, slots=True)
class Done:
    """It has happened, and gave ``value``."""

    value: Any


class Answer(Enum):
    """Answers without a value."""

    NOT_DONE = "not done"
    STILL_UNKNOWN = "still unknown"


NOT_DONE: Final = Answer.NOT_DONE
"""It has not happened, and what was sent before cannot make it happen any more."""
STILL_UNKNOWN: Final = Answer.STILL_UNKNOWN
"""The outside system cannot tell either (yet)."""


def done(value: Any = None) -> Done:
    """It has happened: ``value`` is what the effect's function would have returned."""
    return Done(value)


Reconciled: TypeAlias = Done | Answer
Reconcile: TypeAlias = Callable[[str, EffectRecord], Reconciled | Awaitable[Reconciled]]
"""(idempotency key, record) -> what is known outside."""
