"""What can go wrong with a run."""

from dataclasses import dataclass
from typing import Any, ClassVar

from dapr_runners.errors import DaprRunnersError, ErrorCategory


@dataclass(eq=False)
class UnsupportedSdkError(DaprRunnersError):
    """The installed dapr SDK has no {symbol}, which the engine needs, so nothing can run. Install
    a tested version: pip install 'dapr[workflow]>=1.19,<1.20'."""

    symbol: str


@dataclass(eq=False)
class RunnerNotStartedError(DaprRunnersError):
    """The runner {runner!r} is not started, so nobody would work on a run. Call start() on it
    first, or connect() if other processes do the work."""

    runner: str


@dataclass(eq=False)
class DuplicateRunnerError(DaprRunnersError):
    """A runner named {runner!r} already exists in this process, and recorded runs find their
    runner by its name. Give one of the two another name."""

    runner: str


@dataclass(eq=False)
class RunActiveError(DaprRunnersError):
    """The thread {thread!r} of {runner!r} already has an active run ({run_id}) with a different
    input, so this one was refused and nothing was started. Wait for the run, cancel it, or pass
    multitask_strategy="enqueue" or "interrupt"."""

    category: ClassVar[ErrorCategory] = "refused"

    runner: str
    thread: str
    run_id: str


@dataclass(eq=False)
class RunIdInUseError(DaprRunnersError):
    """The run id {run_id!r} already names a run of another runner or with another input, and a run
    id names one run for ever. Nothing was started. Use a new run id, or the same input to attach
    to that run."""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str


@dataclass(eq=False)
class InvalidThreadIdError(DaprRunnersError, ValueError):
    """The thread or session id {thread!r} is no valid Unicode text, so nothing can be stored under
    it, and nothing was started. Use another."""

    category: ClassVar[ErrorCategory] = "usage"

    thread: str


@dataclass(eq=False)
class InvalidRunIdError(DaprRunnersError, ValueError):
    """The run id {run_id!r} cannot name a Dapr workflow, so nothing was started. Use 1 to {longest}
    letters, digits, '-' and '_'."""

    category: ClassVar[ErrorCategory] = "usage"

    run_id: str
    longest: int = 64


@dataclass(eq=False)
class InvalidTenantError(DaprRunnersError, ValueError):
    """{tenant!r} cannot name a tenant, as {reason}, so nothing was looked up or started. Use a text
    of 1 to 256 characters without control characters: the id that your accounts have."""

    category: ClassVar[ErrorCategory] = "usage"

    tenant: str
    reason: str


@dataclass(eq=False)
class TenantMismatchError(DaprRunnersError, ValueError):
    """A call on the runner {runner!r} for the tenant {tenant!r} names the tenant {named!r}, so it
    was refused and nothing was looked up or started. Name one tenant: that of for_tenant()."""

    runner: str
    tenant: str
    named: str


@dataclass(eq=False)
class InvalidRunnerNameError(DaprRunnersError, ValueError):
    """{runner!r} cannot name a runner, as {reason}, so it was not made. Use another name: letters,
    digits, '-' and '_' are always right."""

    runner: str
    reason: str


@dataclass(eq=False)
class InvalidOptionError(DaprRunnersError, ValueError):
    """The runner {runner!r} cannot be made with {option}={value!r}: it has to be {wanted}. Nothing
    was started."""

    category: ClassVar[ErrorCategory] = "usage"
    runner: str
    option: str
    value: Any
    wanted: str


@dataclass(eq=False)
class RunNotFoundError(DaprRunnersError):
    """There is no run {run_id!r}: it never existed or was purged. Check the id with
    `dapr-runners list`."""

    category: ClassVar[ErrorCategory] = "not found"

    run_id: str


@dataclass(eq=False)
class EventNotFoundError(DaprRunnersError):
    """The run {run_id!r} has no event {event_id!r}, or not any more: chunks of a step that ran
    again may be others. Leave the id out to read the events from the beginning."""

    category: ClassVar[ErrorCategory] = "not found"

    run_id: str
    event_id: str


@dataclass(eq=False)
class AmbiguousThreadError(DaprRunnersError):
    """Several runners have runs of the thread or session {thread!r}: {runners}. Name one of them
    with --runner."""

    category: ClassVar[ErrorCategory] = "usage"

    thread: str
    runners: str


@dataclass(eq=False)
class QuestionNotFoundError(DaprRunnersError):
    """The run {run_id!r} asks no question {key!r} now. Look up the open ones with pending(), or
    with `dapr-runners show`."""

    category: ClassVar[ErrorCategory] = "not found"

    run_id: str
    key: str


@dataclass(eq=False)
class RunNotSuspendedError(DaprRunnersError):
    """The run {run_id!r} is {status}, not suspended, so nothing was changed. {advice}"""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str
    status: str
    advice: str


@dataclass(eq=False)
class RetryRefusedError(DaprRunnersError):
    """The run {run_id!r} cannot be retried so: {reason}. Nothing was started. {remedy}"""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str
    reason: str
    remedy: str


@dataclass(eq=False)
class StepNotFoundError(DaprRunnersError):
    """The run {run_id!r} has no step {step!r} that it could go on from. It has: {steps}."""

    category: ClassVar[ErrorCategory] = "not found"

    run_id: str
    step: str
    steps: str


@dataclass(eq=False)
class RunOverError(DaprRunnersError):
    """The run {run_id!r} is over, so it can not be {what}, and nothing was changed. Look at it with
    `dapr-runners show`."""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str
    what: str


@dataclass(eq=False)
class RunNotEndedError(DaprRunnersError):
    """The run {run_id!r} is still active, so nothing of it was deleted. Wait for its end, or cancel
    it first."""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str


@dataclass(eq=False)
class RunSupersededError(DaprRunnersError):
    """The run {run_id!r} cannot go on: the thread {thread!r} has had another turn since, which went
    on from the state before it. Drop its dead letter, if it has one, and make a new call on the
    thread."""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str
    thread: str


@dataclass(eq=False)
class WorkerMissingError(DaprRunnersError):
    """No process works for the app of the sidecar at {address}, and without one the sidecar changes
    no workflow: this one is left as it is. Start a worker (a program that calls start() on the
    runner), then do this again."""

    category: ClassVar[ErrorCategory] = "no worker"

    address: str


@dataclass(eq=False)
class RunCancelledError(DaprRunnersError):
    """The run {run_id!r} was cancelled before it ended, so it has no result. Steps recorded until
    then stay recorded."""

    run_id: str


@dataclass(eq=False)
class RunFailedError(DaprRunnersError):
    """The run {run_id!r} failed in the engine, not in a step: {error_type}: {detail}. Its records
    are kept. Remove the cause and call again with the same input to start a new turn."""

    run_id: str
    error_type: str
    detail: str


@dataclass(eq=False)
class PoisonStepError(DaprRunnersError):
    """The step {step!r} of run {run_id!r} was started {attempts} times and never came back: each
    time its worker died. The run was failed so that it kills no more workers. Find out what the
    step does to its process (memory, native code, os._exit) before you run it again."""

    run_id: str
    step: str
    attempts: int


@dataclass(eq=False)
class UnknownStepError(DaprRunnersError):
    """The run {run_id!r} is at step {step!r}, which the workers of runner {runner!r} do not have,
    so it waits. Start a worker whose program has the step, or cancel the run."""

    run_id: str
    runner: str
    step: str


@dataclass(eq=False)
class StepTimeoutError(DaprRunnersError):
    """The step {step!r} of run {run_id!r} took longer than its limit of {seconds} s and was given
    up; if it still ends, its result is ignored. Raise step_timeout if the step may take
    longer."""

    run_id: str
    step: str
    seconds: float


@dataclass(eq=False)
class EffectUnknownError(DaprRunnersError):
    """Whether the effect {effect!r} of step {step!r} in run {run_id!r} has happened is not known
    (idempotency key {idempotency_key}): {reason}. So it was not repeated and the run does not go
    on. Look at the system it goes to. A run that is parked with it is listed by
    `dapr-runners dead-letter list`: resolve the letter if it has happened, retry it if it has not,
    drop it to give it up, and call again. {advice}"""

    run_id: str
    step: str
    effect: str
    idempotency_key: str
    reason: str = "it was cut off in the middle"
    advice: str = ""


@dataclass(eq=False)
class MessageUndeliveredError(DaprRunnersError):
    """The message {message_id} to {to}, of step {step!r} in run {run_id!r}, was not taken yet:
    {reason}. It is recorded, and sent again until it is taken; the run goes on after that. Bring
    the receiver back, or cancel the run."""

    run_id: str
    step: str
    to: str
    message_id: str
    reason: str


@dataclass(eq=False)
class ActorStoreMissingError(DaprRunnersError):
    """The sidecar at {address} has no actor state store, so no workflow can run. Add
    `actorStateStore: "true"` to one state store component in its resources path (components/ of
    dapr-runners has ready files) and restart it."""

    category: ClassVar[ErrorCategory] = "no sidecar"

    address: str


@dataclass(eq=False)
class ActorStoreDownError(DaprRunnersError):
    """The sidecar at {address} does not reach the state store that its workflows are kept in, so no
    run goes on: {detail}. Start that store, or correct its address in the component file and
    restart the sidecar; runs then go on by themselves."""

    category: ClassVar[ErrorCategory] = "no sidecar"
    address: str
    detail: str


@dataclass(eq=False)
class WorkflowEngineUnavailableError(DaprRunnersError):
    """The sidecar at {address} cannot run workflows ({detail}). Check that placement and scheduler
    are running and that the sidecar reaches them."""

    category: ClassVar[ErrorCategory] = "no sidecar"

    address: str
    detail: str
