"""The framework-free engine: one workflow generator, recorded steps, turns, and the runner base."""

from dapr_runners._statuses import RunStatus, StepStatus
from dapr_runners.engine._answers import Answers
from dapr_runners.engine._attempts import is_dead, process_identity
from dapr_runners.engine._bus import Bus, LiveChunk
from dapr_runners.engine._dead_letters import FAILED, PARKED, UNSENT, Letters
from dapr_runners.engine._delivery import Delivery, NotTaken
from dapr_runners.engine._effect_keys import (
    answer_key,
    answers_in,
    begun_in,
    begun_key,
    effect_key,
)
from dapr_runners.engine._faults import sidecar_fault, without_sdk_log
from dapr_runners.engine._following import those_after, told_to_the_end
from dapr_runners.engine._halts import Abandons, Breaks, Halt, Parks
from dapr_runners.engine._held_up import HeldUp, held_up
from dapr_runners.engine._insight import Insight, Question
from dapr_runners.engine._io import IO, BlockingIO, LoopIO, iterate_in_thread, run_in_thread
from dapr_runners.engine._journal import Journal, Limits
from dapr_runners.engine._keys import (
    artifact_prefix,
    digest,
    end_key,
    is_text,
    record_key,
    resolved_key,
    safe_name,
    spec_key,
)
from dapr_runners.engine._listing import Unreadable, Wanted, list_runs
from dapr_runners.engine._live_log import LiveLog
from dapr_runners.engine._metadata import (
    missing_service_of,
    scheduler_answers,
    sidecar_metadata,
)
from dapr_runners.engine._named_runs import newest_of
from dapr_runners.engine._outbox import unpacked
from dapr_runners.engine._overview import Overview
from dapr_runners.engine._parked_event import parked_event, until_parked
from dapr_runners.engine._patience import PatientIO
from dapr_runners.engine._presence import is_worker_there
from dapr_runners.engine._probe import probe_workflows
from dapr_runners.engine._pubsub import PubSub
from dapr_runners.engine._reader import Chunk, Log, Reader
from dapr_runners.engine._recent import Recent
from dapr_runners.engine._restart import restart
from dapr_runners.engine._retry import Retry
from dapr_runners.engine._retrying import retry
from dapr_runners.engine._roster import Member, roster
from dapr_runners.engine._run_steps import follow_steps, steps_of, steps_with_effects
from dapr_runners.engine._run_summary import RunSummary
from dapr_runners.engine._runner import MAX_VALUE_SIZE, Runner
from dapr_runners.engine._sdk import receive_limit
from dapr_runners.engine._serve import serve
from dapr_runners.engine._step_summary import StepSummary
from dapr_runners.engine._telling import Telling, require_worker
from dapr_runners.engine._tenants import mark_of, tenant_mark, within
from dapr_runners.engine._turns import (
    Claim,
    MultitaskStrategy,
    Progress,
    Turns,
    no_base,
    pack_spec,
    said,
    unpack_spec,
)
from dapr_runners.engine._watched import base_in
from dapr_runners.engine._watching import Attempt, Call, Watch, Watcher, Watching, watching
from dapr_runners.engine._wide import needs_parts
from dapr_runners.engine._work import (
    AGAIN,
    ANY_NAME,
    Adapter,
    BreaksRun,
    Json,
    Produced,
    Record,
    Work,
    unpack_record,
)
from dapr_runners.engine._worker import Worker, default_worker, process_worker
from dapr_runners.engine.errors import (
    ActorStoreDownError,
    ActorStoreMissingError,
    AmbiguousThreadError,
    DuplicateRunnerError,
    EffectUnknownError,
    EventNotFoundError,
    InvalidOptionError,
    InvalidRunIdError,
    InvalidRunnerNameError,
    InvalidTenantError,
    InvalidThreadIdError,
    MessageUndeliveredError,
    PoisonStepError,
    QuestionNotFoundError,
    RetryRefusedError,
    RunActiveError,
    RunCancelledError,
    RunFailedError,
    RunIdInUseError,
    RunnerNotStartedError,
    RunNotEndedError,
    RunNotFoundError,
    RunNotSuspendedError,
    RunOverError,
    RunSupersededError,
    StepNotFoundError,
    StepTimeoutError,
    TenantMismatchError,
    UnknownStepError,
    UnsupportedSdkError,
    WorkerMissingError,
    WorkflowEngineUnavailableError,
)

__all__ = [
    "AGAIN",
    "ANY_NAME",
    "FAILED",
    "IO",
    "MAX_VALUE_SIZE",
    "PARKED",
    "UNSENT",
    "Abandons",
    "ActorStoreDownError",
    "ActorStoreMissingError",
    "Adapter",
    "AmbiguousThreadError",
    "Answers",
    "Attempt",
    "BlockingIO",
    "Breaks",
    "BreaksRun",
    "Bus",
    "Call",
    "Chunk",
    "Claim",
    "Delivery",
    "DuplicateRunnerError",
    "EffectUnknownError",
    "EventNotFoundError",
    "Halt",
    "HeldUp",
    "Insight",
    "InvalidOptionError",
    "InvalidRunIdError",
    "InvalidRunnerNameError",
    "InvalidTenantError",
    "InvalidThreadIdError",
    "Journal",
    "Json",
    "Letters",
    "Limits",
    "LiveChunk",
    "LiveLog",
    "Log",
    "LoopIO",
    "Member",
    "MessageUndeliveredError",
    "MultitaskStrategy",
    "NotTaken",
    "Overview",
    "Parks",
    "PatientIO",
    "PoisonStepError",
    "Produced",
    "Progress",
    "PubSub",
    "Question",
    "QuestionNotFoundError",
    "Reader",
    "Recent",
    "Record",
    "Retry",
    "RetryRefusedError",
    "RunActiveError",
    "RunCancelledError",
    "RunFailedError",
    "RunIdInUseError",
    "RunNotEndedError",
    "RunNotFoundError",
    "RunNotSuspendedError",
    "RunOverError",
    "RunStatus",
    "RunSummary",
    "RunSupersededError",
    "Runner",
    "RunnerNotStartedError",
    "StepNotFoundError",
    "StepStatus",
    "StepSummary",
    "StepTimeoutError",
    "Telling",
    "TenantMismatchError",
    "Turns",
    "UnknownStepError",
    "Unreadable",
    "UnsupportedSdkError",
    "Wanted",
    "Watch",
    "Watcher",
    "Watching",
    "Work",
    "Worker",
    "WorkerMissingError",
    "WorkflowEngineUnavailableError",
    "answer_key",
    "answers_in",
    "artifact_prefix",
    "base_in",
    "begun_in",
    "begun_key",
    "default_worker",
    "digest",
    "effect_key",
    "end_key",
    "follow_steps",
    "held_up",
    "is_dead",
    "is_text",
    "is_worker_there",
    "iterate_in_thread",
    "list_runs",
    "mark_of",
    "missing_service_of",
    "needs_parts",
    "newest_of",
    "no_base",
    "pack_spec",
    "parked_event",
    "probe_workflows",
    "process_identity",
    "process_worker",
    "receive_limit",
    "record_key",
    "require_worker",
    "resolved_key",
    "restart",
    "retry",
    "roster",
    "run_in_thread",
    "safe_name",
    "said",
    "scheduler_answers",
    "serve",
    "sidecar_fault",
    "sidecar_metadata",
    "spec_key",
    "steps_of",
    "steps_with_effects",
    "tenant_mark",
    "those_after",
    "told_to_the_end",
    "unpack_record",
    "unpack_spec",
    "unpacked",
    "until_parked",
    "watching",
    "within",
    "without_sdk_log",
]
