"""The spans that come of one item of a run."""

import secrets
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import context as contexts
from opentelemetry import trace

from dapr_runners.engine import Attempt, Work
from dapr_runners.telemetry._attempt import SpannedAttempt
from dapr_runners.telemetry._replaying import ReplayingSpan
from dapr_runners.telemetry._run_trace import RunTrace
from dapr_runners.telemetry._spans import fail, nanoseconds

if TYPE_CHECKING:
    from dapr_runners.telemetry._telemetry import Telemetry

T = TypeVar("T")
_STEPS = ("fuse", "step")
_MARK_LOST = "its worker was lost"


class ItemWatch:
    """Watches ``work``. A span of a step is made when its outcome is recorded, by whoever recorded
    it; those of attempts, while they are made. ``identity`` is that of this process, if it had made
    the plan and goes on with it."""

    def __init__(
        self, telemetry: "Telemetry", runner: str, work: Work, identity: str | None
    ) -> None:
        self._telemetry = telemetry
        self._runner = runner
        self._work = work
        self._trace = RunTrace.of(work.item)
        self._attempts: list[SpannedAttempt] = []
        self._began = time.time()
        self._first_began: float | None = None
        self._error: BaseException | None = None
        self._lost: tuple[int, float, int] | None = None
        self.attempt_id = secrets.token_hex(8)
        if identity is not None:
            self.attempt_id = f"{self._trace.attempt(work.key, identity):016x}"

    # -- attempts

    def lost(self, number: int, began: float, attempt_id: str | None, identity: str | None) -> None:
        """An attempt before this one did not come back."""
        if attempt_id is not None:
            span_id = int(attempt_id, 16)
        else:
            span_id = self._trace.attempt(self._work.key, identity or "")
        self._lost = number, began, span_id
        if self._work.op in _STEPS:
            self._tell_lost(self._work.item["task"], self._step_key(), self._work.step_name)

    def _tell_lost(self, task: str, key: str, name: str) -> None:
        """The span that its worker could not end: what it made below it is there."""
        if self._lost is None:
            return
        (number, began, span_id), self._lost = self._lost, None
        span = self._telemetry.spans.start(
            f"attempt {name}",
            self._trace.below(self._trace.step(task)),
            {**self._about(key, name), "dapr_runners.attempt": number, "error.type": "lost"},
            span_id=span_id,
            began=began,
        )
        span.set_status(trace.Status(trace.StatusCode.ERROR, _MARK_LOST))
        span.end(nanoseconds(max(self._began, began)))
        self._telemetry.metrics.lost(self._runner, name)
        self._first_began = began

    def begin(self, task: str, key: str, name: str) -> Attempt:
        """The span of an attempt, open."""
        work = self._work
        self._tell_lost(task, key, name)
        number = work.attempt - 1 + work.begun
        attempt = SpannedAttempt(
            self._telemetry,
            self._trace.below(self._trace.step(task)),
            task=task,
            key=key,
            name=name,
            number=number,
            attributes={**self._about(key, name), "dapr_runners.attempt": number},
            span_id=None if self._attempts else int(self.attempt_id, 16),
        )
        self._attempts.append(attempt)
        due = work.item.get("due") or work.item.get("told")
        if due is not None and task == work.item.get("task"):
            self._telemetry.metrics.queued(self._runner, name, attempt.began - due)
        return attempt

    def _about(self, key: str, name: str) -> dict[str, Any]:
        return {
            "dapr_runners.run.id": self._trace.run,
            "dapr_runners.runner": self._runner,
            "dapr_runners.step.id": key,
            "dapr_runners.step.name": name,
        }

    def _step_key(self) -> str:
        work = self._work
        task: str = work.item["task"]
        # Those of a crew's program go by their own keys, wherever they were planned.
        return task if "!" in task else f"{work.lane}{work.n}:{task}"

    # -- the run around it

    async def within_run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine below the span of the run, or of the step around its lane."""
        around = self._trace.span_context(self._trace.around(self._work.lane))
        with trace.use_span(trace.NonRecordingSpan(around)):
            return await start()

    def driving(self, is_replaying: Callable[[], bool]) -> None:
        """Put this context below the span of the run."""
        span = ReplayingSpan(self._trace, is_replaying)
        contexts.attach(trace.set_span_in_context(span))

    # -- what came of it

    def performed(self, outcome: dict[str, Any] | None, error: BaseException | None) -> None:
        """End what is open, and tell when what follows was planned."""
        if outcome is not None:
            if outcome.get("raised") == "interrupt":
                error = None
            if outcome["k"] == "plan":
                outcome["told"] = round(time.time(), 6)
            elif outcome["k"] == "retry":
                outcome["due"] = round(time.time() + outcome["after"], 6)
        self._error = error
        for attempt in self._attempts:
            attempt.ended(error)

    def recorded(self, outcome: dict[str, Any], size: int) -> None:
        """The spans of the steps whose outcome this is."""
        work, metrics = self._work, self._telemetry.metrics
        if work.op == "begin" and not work.lane:
            metrics.run_started(self._runner)
        if outcome["k"] == "plan":
            metrics.snapshot(self._runner, size)
        if outcome["k"] == "retry":
            metrics.retry(self._runner, work.step_name, outcome["after"])
            return
        told = {attempt.task: attempt for attempt in self._attempts}
        own: str | None = work.item["task"] if work.op in _STEPS else None
        for task, attempt in told.items():
            began = self._first_began or attempt.began
            if task == own:
                began = work.item.get("told") or min(work.since, began)
            self._tell_step(
                task, attempt.key, attempt.name, work.lane, began, attempt.error, attempt.number
            )
        if own is not None and own not in told:
            began = work.item.get("told") or work.since
            error = work.injected or self._error
            number = work.attempt - 1 + work.begun
            self._tell_step(own, self._step_key(), work.step_name, work.lane, began, error, number)

    def inner_ended(self, outcome: dict[str, Any], began: float) -> None:
        """The span of the step that is a subgraph, which has ended."""
        lane: str = outcome["lane"]
        key = f"{lane}{outcome['n']}:{outcome['id']}"
        name = self._work.step_name.rpartition("/")[0]
        error = self._error if outcome.get("raised") == "error" else None
        self._tell_step(outcome["id"], key, name, lane, began, error, 1)

    def _tell_step(
        self,
        task: str,
        key: str,
        name: str,
        lane: str,
        began: float,
        error: BaseException | None,
        attempts: int,
    ) -> None:
        now = time.time()
        span = self._telemetry.spans.start(
            f"step {name}",
            self._trace.below(self._trace.around(lane)),
            {**self._about(key, name), "dapr_runners.attempts": attempts},
            span_id=self._trace.step(task),
            began=began,
        )
        if error is not None:
            fail(span, error, self._telemetry.captures)
        span.end(nanoseconds(now))
        self._telemetry.metrics.step(self._runner, name, now - began, error)
