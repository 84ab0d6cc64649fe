"""The steps of a run, as its records tell of them: how each went, for people to read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dapr_runners._statuses import StepStatus
from dapr_runners.engine._work import Json, Record
from dapr_runners.state import Codec, CorruptRecordError, describe_error


@dataclass(frozen=True, slots=True)
class StepSummary:
    """An attempt at a step of a run. ``key`` is that of its record, ``step_id`` that of the step,
    the same for all attempts. ``began`` and ``ended`` are seconds since the epoch, ``waited`` the
    seconds from when it was planned to when it began; None where not recorded. ``error`` is what it
    failed with."""

    key: str
    name: str
    status: StepStatus
    attempt: int
    began: float | None
    ended: float | None
    step_id: str = ""
    waited: float | None = None
    error: str | None = None
    effects: list[Json] = field(default_factory=list[Json])

    @property
    def is_over(self) -> bool:
        """Whether the attempt is over."""
        return self.status not in (StepStatus.PLANNED, StepStatus.WAITING)


class Timeline:
    """Reads ``records``, which are by key. ``codec`` reads their errors."""

    def __init__(self, records: Mapping[str, Record], codec: Codec) -> None:
        self._codec = codec
        self._attempts: dict[str, list[Record]] = {}
        for record in records.values():
            self._attempts.setdefault(record.key.partition("~")[0], []).append(record)
        for attempts in self._attempts.values():
            attempts.sort(key=lambda record: int(record.key.partition("~")[2] or 1))

    def steps(self, lane: str = "") -> Iterator[StepSummary]:
        """The steps, in the order of the plans."""
        number = 0
        before: Record | None = None
        while (plan := self._newest(f"{lane}{number}")) is not None:
            yield from self._on_the_way(plan)
            if plan.outcome["k"] != "plan":
                return
            before = plan
            steps: list[Json] = plan.outcome["steps"]
            for step in steps:
                key = f"{lane}{number}:{step['id']}"
                is_fused = len(steps) == 1 and bool(step.get("fuse"))
                if step.get("loop"):
                    yield from self.steps(f"{key}/")
                yield from self._attempts_at(
                    f"{lane}{number + 1}" if is_fused else key, key, step, before
                )
            number += 1

    def _attempts_at(self, at: str, key: str, step: Json, plan: Record) -> Iterator[StepSummary]:
        found = self._attempts.get(at, [])
        for record in found:
            yield self._summary(record, key, step["name"], plan)
        if not found or found[-1].outcome["k"] == "retry":
            status = StepStatus.WAITING if step.get("wait") else StepStatus.PLANNED
            yield StepSummary(at, step["name"], status, 0, None, None, key)

    def _newest(self, key: str) -> Record | None:
        return found[-1] if (found := self._attempts.get(key)) else None

    def _on_the_way(self, plan: Record) -> Iterator[StepSummary]:
        """The steps that were performed on the way to a plan or an end, in its own activity."""
        for told in (*plan.body.get("told", ()), *plan.body.get("known", ())):
            if (outcome := told.get("outcome")) is None:
                continue
            error = next((outcome[kind] for kind in ("error", "fatal") if kind in outcome), None)
            ended, took = outcome["ended"] or None, outcome["took"]
            yield StepSummary(
                plan.key,
                told["key"].rpartition("!")[2].partition(".")[0],
                StepStatus.COMPLETED if error is None else StepStatus.FAILED,
                plan.attempt,
                None if ended is None else ended - took,
                ended,
                told["key"],
                error=self._described(error),
            )

    def _summary(self, record: Record, key: str, name: str, plan: Record) -> StepSummary:
        began, ended = record.times or (None, None)
        waited = None
        if began is not None and plan.times is not None:
            waited = max(0.0, began - plan.times[1])
        return StepSummary(
            record.key,
            name,
            _status_of(record),
            record.attempt,
            began,
            ended,
            key,
            waited,
            self._described(error_in(record)),
        )

    def _described(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        try:
            told = describe_error(self._codec.decode(data))
        except CorruptRecordError as damaged:
            return str(damaged)
        return f"{told['error_type']}: {told['message']}"


def error_in(record: Record) -> bytes | None:
    """The error that a record is of, encoded; None if it is of none, or too large to be in it."""
    if _status_of(record) is not StepStatus.FAILED:
        return None
    body: Any = record.body
    found: Any = body.get("error")
    if record.outcome["k"] == "step":
        told = body["known"]["outcome"] if "known" in body else body["result"]
        found = told.get("error") or told.get("fatal")
    return found if isinstance(found, bytes) else None  # a large one is an artifact


def _status_of(record: Record) -> StepStatus:
    outcome = record.outcome
    match outcome["k"]:
        case "retry":
            return StepStatus.RETRIED
        case "step":
            raised = {"error": StepStatus.FAILED, "interrupt": StepStatus.INTERRUPTED}
            return raised.get(outcome.get("raised") or "", StepStatus.COMPLETED)
        case "end" if outcome["status"] in ("failed", "interrupted"):
            return StepStatus(outcome["status"])
        case _:
            return StepStatus.COMPLETED
