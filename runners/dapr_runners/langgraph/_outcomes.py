"""What an activity made of a loop or a step, as an outcome for the workflow and a record."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from langgraph.errors import GraphBubbleUp
from langgraph.types import RetryPolicy

from dapr_runners.engine import Json, LiveLog, Produced, Work
from dapr_runners.langgraph._live import Live
from dapr_runners.langgraph._lives import drop
from dapr_runners.langgraph._names import COMMIT, step_name
from dapr_runners.langgraph._outbox import freeze_box
from dapr_runners.langgraph._parking import StepResult
from dapr_runners.langgraph._parts import PartWriter
from dapr_runners.langgraph._results import freeze_result
from dapr_runners.langgraph._scope import Scope
from dapr_runners.langgraph._snapshot import freeze, make_handler
from dapr_runners.langgraph._step import is_fatal, subgraph_of
from dapr_runners.state import Codec, UnstorableValueError

RetryAfter = Callable[[Any, BaseException, int, float], float | None]
"""(node, error, attempt, seconds since the first one began) -> seconds to wait, or None."""


@dataclass(slots=True)
class Held:
    """What an activity made, until it is recorded."""

    live: Live | None
    """The loop, to be parked for its next plan."""
    parts: PartWriter
    of: Live | None = None
    """The loop whose step this is the result of."""
    result: StepResult | None = None


class Outcomes:
    """Makes the outcomes of one runner's activities."""

    def __init__(self, codec: Codec, live_log: LiveLog, retry_after: RetryAfter) -> None:
        self._codec = codec
        self._live_log = live_log
        self._retry_after = retry_after

    def plan(
        self, work: Work, scope: Scope, live: Live, chunks: list[bytes], box: list[Any]
    ) -> Produced:
        """``live`` is parked at its next plan."""
        loop, plan = live.loop, live.parking.plan or []
        steps = [self._planned_step(live, task, len(plan) == 1) for task in plan]
        outcome: Json = {
            "k": "plan",
            "lane": work.lane,
            "at": work.key,
            "n": live.n,
            "steps": steps,
            "commit": step_name(live.path, COMMIT),
        }
        if (window := loop.config.get("max_concurrency")) is not None:
            outcome["window"] = window
        if live.graph.step_timeout is not None:
            outcome["timeout"] = live.graph.step_timeout
        parts = scope.writer(work.lane)
        try:
            body: Json = {
                "loop": freeze(loop, parts),
                "run_id": str(live.parking.run_id),
                "step": loop.step,
            }
            if work.lane:
                body["latest"] = parts.put(live.latest, "the subgraph's values")
                body["up_at"] = live.up_at
            return self._produced(outcome, body, chunks, box, parts, scope, live)
        except UnstorableValueError as error:
            if work.op == "fuse":
                error.where = f"node {work.step_name!r}, {error.where}"
            drop(live)
            return self.ended(work, scope, live, error, chunks, [])

    def _planned_step(self, live: Live, task: Any, lone: bool) -> Json:
        step: Json = {"id": task.id, "name": step_name(live.path, task.name)}
        if subgraph_of(live.graph, task.name) is not None:
            step["loop"] = True
        elif lone and task.name not in (live.graph.node_error_handler_map or {}):
            step["fuse"] = True
        return step

    def ended(
        self,
        work: Work,
        scope: Scope,
        live: Live,
        error: BaseException | None,
        chunks: list[bytes],
        box: list[Any],
    ) -> Produced:
        """The root graph's run is over, with ``error`` if it failed."""
        outcome: Json = {"k": "end", "at": work.key}
        parts = scope.writer(work.lane)
        body: Json = {}
        if error is not None:
            outcome["status"] = "failed"
            body["error"] = self._codec.encode(error, "the error")
        else:
            outcome["status"] = "interrupted" if live.parking.interrupted else "completed"
        if live.loop is not None:
            body["step"] = live.loop.step
        try:
            return self._produced(outcome, body, chunks, box, parts, scope, None)
        except UnstorableValueError as refused:
            # What is not stored did not happen: what the saver has is the state before.
            return self.ended(work, scope, live, error or refused, chunks, [])

    def given_up(self, work: Work, scope: Scope, error: BaseException) -> Produced:
        """The run is over with ``error``, before the graph got to do anything here."""
        outcome: Json = {"k": "end", "at": work.key, "status": "failed"}
        body: Json = {"error": self._codec.encode(error, "the error")}
        return self._produced(outcome, body, [], [], scope.writer(work.lane), scope, None)

    def step(
        self,
        work: Work,
        scope: Scope,
        live: Live,
        result: StepResult,
        chunks: list[bytes],
        box: list[Any],
        lane: str | None = None,
        n: int | None = None,
    ) -> Produced:
        """The outcome of one planned task of ``live``. A result that cannot be stored is an error
        of the task: it is not run again for it."""
        try:
            return self._step(work, scope, live, result, chunks, box, lane, n)
        except UnstorableValueError as error:
            refused = StepResult(result.id, [], error, result.handles, result.handled_error)
            return self._step(work, scope, live, refused, chunks, [], lane, n)

    def _step(
        self,
        work: Work,
        scope: Scope,
        live: Live,
        result: StepResult,
        chunks: list[bytes],
        box: list[Any],
        lane: str | None,
        n: int | None,
    ) -> Produced:
        lane = work.lane if lane is None else lane
        n = work.n if n is None else n
        task = live.loop.tasks[result.id]
        if (pause := self.pause(live, task, result.error, work)) is not None:
            return self.again(pause, result.id, work)
        outcome: Json = {"k": "step", "lane": lane, "n": n, "id": result.id, "at": work.key}
        if result.error is not None:
            outcome["raised"] = "interrupt" if isinstance(result.error, GraphBubbleUp) else "error"
        handler = self._handler_step(live, task, result, work)
        if handler is not None:
            outcome["more"] = [handler]
        elif is_fatal(result.error):
            outcome["stop"] = True
        parts = scope.writer(f"{lane}{n}:{result.id}")
        body: Json = {"result": freeze_result(result, parts, task.name)}
        produced = self._produced(outcome, body, chunks, box, parts, scope, None)
        produced.held.of, produced.held.result = live, result
        produced.gave_up = self.gave_up(live, task, result.error)
        return produced

    def _produced(
        self,
        outcome: Json,
        body: Json,
        chunks: list[bytes],
        box: list[Any],
        parts: PartWriter,
        scope: Scope,
        live: Live | None,
    ) -> Produced:
        outbox = freeze_box(box, parts)
        body["artifacts"] = sorted(parts.used)
        if calls := scope.take_calls():
            body["calls"] = calls
        if scope.is_live:
            body["live"] = self._live_log.end(scope.run, outcome["at"])
        return Produced(
            outcome,
            body,
            chunks,
            outbox,
            before_record=(
                partial(scope.store_artifacts, parts, scope.is_async) if parts.artifacts else None
            ),
            held=Held(live, parts),
        )

    def again(self, pause: float, task_id: str, work: Work) -> Produced:
        """The step failed and is tried again. What it streamed goes unrecorded, as LangGraph's own
        retries show nothing of a failed attempt."""
        self._live_log.end(work.run, work.key)
        return work.again(task_id, pause)

    def _handler_step(self, live: Live, task: Any, result: StepResult, work: Work) -> Json | None:
        error = result.error
        node = live.loop.nodes.get(task.name)
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp) or node is None:
            return None
        if not node.error_handler_node or node.is_error_handler:
            return None
        handler = make_handler(live.loop, task.id, error)
        return {"id": handler.id, "name": step_name(live.path, handler.name), "of": work.key}

    def gave_up(self, live: Live, task: Any, error: BaseException | None) -> bool:
        """Whether LangGraph has tried ``task`` again, as its own policy says, until it failed."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return False
        node = live.graph.nodes.get(task.name)
        policies: Any = (node.retry_policy if node else None) or live.graph.retry_policy or ()
        each: list[Any] = [policies] if isinstance(policies, RetryPolicy) else list(policies)
        return any(_retries(policy, error) for policy in each)

    def pause(self, live: Live, task: Any, error: BaseException | None, work: Work) -> float | None:
        """Seconds to wait before the failed ``task`` is tried again; None if it is not."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return None  # what is no Exception (``sys.exit``) is nothing to try again
        if work.injected is not None:
            return None
        node = live.graph.nodes.get(task.name)
        if node is None or node.retry_policy or live.graph.retry_policy:
            return None  # LangGraph has retried as its own policy says
        return self._retry_after(node, error, work.attempt, work.age)


def _retries(policy: RetryPolicy, error: Exception) -> bool:
    retry_on: Any = policy.retry_on
    if isinstance(retry_on, type):
        return isinstance(error, retry_on)
    return bool(retry_on(error)) if callable(retry_on) else isinstance(error, tuple(retry_on))
