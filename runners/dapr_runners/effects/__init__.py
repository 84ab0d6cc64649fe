"""Effects that happen once: idempotency keys, execution records, leases, reconcile, dead letters.

The same for nodes of LangGraph, tools of CrewAI, and anything that a step of a user's calls.
"""

from dapr_runners.effects._current import CurrentEffect, current_effect
from dapr_runners.effects._dead_letters import DeadLetter, DeadLetters, Decision
from dapr_runners.effects._effect import effect
from dapr_runners.effects._export import export_run
from dapr_runners.effects._notes import Notes
from dapr_runners.effects._outbox import publish, webhook
from dapr_runners.effects._reconcile import NOT_DONE, STILL_UNKNOWN, Done, done
from dapr_runners.effects._record import EffectRecord, EffectStatus
from dapr_runners.effects._records import EffectRecords
from dapr_runners.effects._states import with_effects
from dapr_runners.effects._step import EffectHost, Effects
from dapr_runners.effects.errors import (
    DeadLetterDecidedError,
    DeadLetterNotFoundError,
    DecisionRefusedError,
    EffectDroppedError,
    EffectMismatchError,
    EffectUnknownError,
    IllegalTransitionError,
    LeaseLostError,
    MessageNotNotedError,
    MessageRefusedError,
    NestedEffectError,
    RunEndedError,
    UnstorableResultError,
)

__all__ = [
    "NOT_DONE",
    "STILL_UNKNOWN",
    "CurrentEffect",
    "DeadLetter",
    "DeadLetterDecidedError",
    "DeadLetterNotFoundError",
    "DeadLetters",
    "Decision",
    "DecisionRefusedError",
    "Done",
    "EffectDroppedError",
    "EffectHost",
    "EffectMismatchError",
    "EffectRecord",
    "EffectRecords",
    "EffectStatus",
    "EffectUnknownError",
    "Effects",
    "IllegalTransitionError",
    "LeaseLostError",
    "MessageNotNotedError",
    "MessageRefusedError",
    "NestedEffectError",
    "Notes",
    "RunEndedError",
    "UnstorableResultError",
    "current_effect",
    "done",
    "effect",
    "export_run",
    "publish",
    "webhook",
    "with_effects",
]
