"""A step of a run, as its records tell of it: how it went, for people to read."""

from collections.abc import Iterator
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


class Summaries:
    """Reads what records tell of steps. ``codec`` reads their errors."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec

    def of(self, record: Record, step_id: str, name: str, plan: Record) -> StepSummary:
        """The attempt that ``record`` is of, at the step ``step_id`` of ``plan``."""
        began, ended = record.times or (None, None)
        return StepSummary(
            record.key,
            name,
            _status_of(record),
            record.attempt,
            began,
            ended,
            step_id,
            waited(plan, began),
            self._described(error_in(record)),
        )

    def around(
        self, first: Record, last: Record, step_id: str, name: str, plan: Record
    ) -> StepSummary:
        """The step around a lane whose records go from ``first`` to ``last``."""
        began = None if first.times is None else first.times[0]
        ended = None if last.times is None else last.times[1]
        status, error = _status_of(last), self._described(error_in(last))
        at, after = last.key, waited(plan, began)
        return StepSummary(at, name, status, first.attempt, began, ended, step_id, after, error)

    def on_the_way(self, plan: Record) -> Iterator[StepSummary]:
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

    def _described(self, data: bytes | None) -> str | None:
        if data is None:
            return None
        try:
            told = describe_error(self._codec.decode(data))
        except CorruptRecordError as damaged:
            return str(damaged)
        return f"{told['error_type']}: {told['message']}"


def waited(plan: Record, began: float | None) -> float | None:
    """Seconds from when a step of ``plan`` was planned to when it ``began``."""
    if began is None or plan.times is None:
        return None
    return max(0.0, began - plan.times[1])


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
