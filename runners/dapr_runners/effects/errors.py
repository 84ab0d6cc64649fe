"""What can go wrong with effects."""

from dataclasses import dataclass
from typing import ClassVar

from dapr_runners.engine.errors import EffectUnknownError
from dapr_runners.errors import DaprRunnersError, ErrorCategory
from dapr_runners.state import UnstorableValueError

__all__ = [
    "DeadLetterDecidedError",
    "DeadLetterNotFoundError",
    "DecisionRefusedError",
    "EffectDroppedError",
    "EffectMismatchError",
    "EffectUnknownError",
    "IllegalTransitionError",
    "LeaseLostError",
    "MessageNotNotedError",
    "MessageRefusedError",
    "NestedEffectError",
    "RunEndedError",
    "UnstorableResultError",
]


@dataclass(eq=False)
class EffectMismatchError(DaprRunnersError):
    """The effect {effect!r} in step {step!r} of run {run_id!r} was called with other arguments than
    are recorded under its key {idempotency_key}, so it was not carried out, the recorded result was
    not given for it, and the run has failed. A step that runs again must ask for the same effects
    in the same order: compute what differs (a time, a random number, an answer of a model) in a
    step before. Where calls of one step may come in any order, as from threads, give each operation
    a key of its own with @effect(key=...)."""

    run_id: str
    step: str
    effect: str
    idempotency_key: str


@dataclass(eq=False)
class IllegalTransitionError(DaprRunnersError):
    """The effect {effect!r} ({idempotency_key}) cannot go from {before} to {after}, so nothing was
    written. Read its record again: somebody else has changed it, or it is settled for good."""

    effect: str
    idempotency_key: str
    before: str
    after: str


@dataclass(eq=False)
class LeaseLostError(DaprRunnersError):
    """The lease of the effect {effect!r} in step {step!r} of run {run_id!r} was taken over while
    this worker was at it, so what it did counts for nothing here: no result, no step and no
    checkpoint is recorded of it. The worker hung, or could not reach the store, for longer than the
    lease of {lease} s. Raise @effect(lease=...) if that happens to workers that are well."""

    run_id: str
    step: str
    effect: str
    lease: float


@dataclass(eq=False)
class NestedEffectError(DaprRunnersError):
    """The effect {effect!r} was called inside the effect {inside!r}, so it was not carried out. An
    effect is one action with one key: call both from the step itself, or make the inner one a plain
    function."""

    effect: str
    inside: str


@dataclass(eq=False)
class UnstorableResultError(UnstorableValueError):
    """The effect {effect!r} has happened (idempotency key {idempotency_key}), but {where} is a
    {type_name}, which cannot be stored: {reason}. So the effect is recorded as done and never
    repeated, its result is lost, and its run fails. Look for what came of it in the system it goes
    to. {remedy}"""

    effect: str
    idempotency_key: str


@dataclass(eq=False)
class MessageNotNotedError(DaprRunnersError):
    """The message to {to} was not noted, because {reason}: nobody would send it. Call publish()
    and webhook() in a node or a tool of a run, in its thread or in one with a copy of its context,
    and not inside an @effect."""

    to: str
    reason: str


@dataclass(eq=False)
class MessageRefusedError(DaprRunnersError):
    """The message of the dead letter {letter!r} was not taken by {to}: {reason}. The letter is
    still there: retry it when the receiver takes it, or drop it."""

    letter: str
    to: str
    reason: str


@dataclass(eq=False)
class EffectDroppedError(DaprRunnersError):
    """The effect {effect!r} in step {step!r} of run {run_id!r} was dropped by {who}: {why}. Whether
    it has happened was not known, and it is not tried again. Its run goes on without it if the step
    takes this exception, and fails otherwise."""

    run_id: str
    step: str
    effect: str
    who: str
    why: str


@dataclass(eq=False)
class DeadLetterNotFoundError(DaprRunnersError):
    """There is no dead letter {letter!r}: it was decided, or its run was purged. List those there
    are with `dapr-runners dead-letter list`."""

    category: ClassVar[ErrorCategory] = "not found"

    letter: str


@dataclass(eq=False)
class DeadLetterDecidedError(DaprRunnersError):
    """The dead letter {letter!r} is decided: its effect is {status}, so nothing was changed. Its
    run goes on as soon as a worker is there."""

    category: ClassVar[ErrorCategory] = "refused"

    letter: str
    status: str


@dataclass(eq=False)
class DecisionRefusedError(DaprRunnersError, ValueError):
    """The decision on the dead letter {letter!r} was refused, and nothing was changed: {reason}."""

    category: ClassVar[ErrorCategory] = "refused"

    letter: str
    reason: str


@dataclass(eq=False)
class RunEndedError(DaprRunnersError):
    """The run {run_id!r} has ended, so nothing waits for this decision on the dead letter
    {letter!r}: nothing was changed, and nothing is carried out. Drop the letter. If the run has
    failed and is to go on, retry the letter of its failed step first."""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str
    letter: str
