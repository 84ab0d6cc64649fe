"""The events of ``run_async``: plain dicts, in order, each with an ``id`` that is stable over
reconnects, the ``workflow_id``, and ``replayed``: whether it was recorded before this call attached
to the run.

==========================  =====================================================================
``workflow_started``        ``workflow_id``, ``thread_id``, ``graph_name``
``step_planned``            ``step`` (superstep number), ``nodes`` (names)
``step_completed``          ``step``, ``node``, ``attempt``: which attempt it was, counting those
                            that failed or were lost with their worker
``step_failed``,            the same: the node raised; it asked something (``interrupt()``)
``step_interrupted``
``step_retry``              ``step``, ``node``, ``after`` (seconds), ``attempt`` (the next one)
``updates`` / ``values`` /  ``data``: what LangGraph's stream mode of that name gives
other stream modes
``workflow_interrupted``    ``interrupts``: what is asked; the next call on the thread answers
``workflow_parked``         ``step``, ``effect``, ``idempotency_key``: nobody knows whether it has
                            happened, and the run waits for a decision (see ``DeadLetters``)
``workflow_completed``      ``output`` (the state), ``steps``, ``status`` ("completed")
``workflow_failed``         ``error``: ``message``, ``error_type``, ``stack_trace``; ``exception``
==========================  =====================================================================
"""

from collections.abc import AsyncIterator, Collection
from typing import Any, cast

from dapr_runners.engine import (
    Chunk,
    Claim,
    EffectUnknownError,
    Log,
    Record,
    parked_event,
    until_parked,
)
from dapr_runners.langgraph._views import split
from dapr_runners.state import Codec, describe_error


async def run_events(
    follow: Log,
    codec: Codec,
    graph_name: str,
    claim: Claim,
    arguments: dict[str, Any],
    shown_modes: Collection[str],
) -> AsyncIterator[dict[str, Any]]:
    """The events of one run, which was started with ``arguments``. ``follow`` reads its log, and
    says when it has caught up with it. Chunks of ``shown_modes`` are shown."""
    run = claim.run
    common = {"workflow_id": run, "replayed": not claim.started}
    yield {
        "type": "workflow_started",
        "id": f"{run}/started",
        **common,
        "thread_id": claim.thread,
        "graph_name": graph_name,
    }
    state = _Outcome()
    async for event in until_parked(follow(lambda: common.update(replayed=False))):
        if isinstance(event, EffectUnknownError):
            yield parked_event(event)
            return
        if isinstance(event, Chunk):
            mode, ns, data = split(codec.decode(event.data, event.id), arguments)
            state.see(mode, ns, data)
            if mode not in shown_modes:
                continue
            shown: dict[str, Any] = {"type": mode, "id": event.id, **common, "data": data}
            if ns:
                shown["namespace"] = ns
            yield shown
        else:
            for number, found in enumerate(_of_record(event, state, codec)):
                yield {"id": f"{run}/{event.key}/{number}", **common, **found}


def is_asked(event: dict[str, Any]) -> bool:
    """Whether an event tells that something is asked."""
    data = event.get("data")
    return event["type"] == "step_interrupted" or (
        isinstance(data, dict) and "__interrupt__" in data
    )


class _Outcome:
    """What the stream said of the result."""

    def __init__(self) -> None:
        self.output: Any = None
        self.interrupts: list[Any] = []
        self.planned: dict[str, tuple[int, str]] = {}
        self.fused: dict[str, tuple[int, str]] = {}  # lane -> superstep, node
        self.steps = 0

    def see(self, mode: str, ns: Any, data: Any) -> None:
        if ns:
            return
        if mode == "values":
            self.output = data
        elif mode == "updates" and isinstance(data, dict) and "__interrupt__" in data:
            self.interrupts.extend(cast(dict[str, Any], data)["__interrupt__"])

    @property
    def asked(self) -> str | None:
        """Set when a node asked something; a static interrupt lets its node complete."""
        return "interrupt" if self.interrupts else None

    def plan(self, number: int, steps: Any) -> None:
        self.planned.update({step["id"]: (number, step["name"]) for step in steps})


def _of_record(record: Record, state: _Outcome, codec: Codec) -> list[dict[str, Any]]:
    outcome = record.outcome
    match outcome["k"]:
        case "plan":
            done = _fused_before(record, state)
            number = record.body["step"]
            nodes = [step["name"] for step in outcome["steps"]]
            state.plan(number, outcome["steps"])
            if not outcome["lane"]:
                state.steps += 1
            if len(nodes) == 1 and outcome["steps"][0].get("fuse"):
                state.fused[outcome["lane"]] = (number, nodes[0])
            planned = {"type": "step_planned", "step": number, "nodes": nodes}
            return [*done, planned]
        case "step":
            number, name = state.planned[outcome["id"]]
            state.plan(number, outcome.get("more") or ())
            settled = _settled(outcome.get("raised"), number, name, record)
            return [*_fused_before(record, state), settled]
        case "retry":
            number, name = state.planned[outcome["id"]]
            return [
                {
                    "type": "step_retry",
                    "step": number,
                    "node": name,
                    "after": outcome["after"],
                    "attempt": outcome["attempt"],
                }
            ]
        case _:
            raised = {"failed": "error", "interrupted": state.asked}.get(outcome["status"])
            return [*_fused_before(record, state, raised), _end(record, state, codec)]


def _fused_before(
    record: Record, state: _Outcome, raised: str | None = None
) -> list[dict[str, Any]]:
    """A fused step has no record of its own: what comes after it tells how it went."""
    head, slash, last = record.key.rpartition("/")
    fused = None if ":" in last else state.fused.pop(head + slash, None)
    return [] if fused is None else [_settled(raised, *fused, record)]


_SETTLED = {None: "step_completed", "interrupt": "step_interrupted", "error": "step_failed"}


def _settled(raised: str | None, step: int, node: str, record: Record) -> dict[str, Any]:
    return {"type": _SETTLED[raised], "step": step, "node": node, "attempt": record.attempt}


def _end(record: Record, state: _Outcome, codec: Codec) -> dict[str, Any]:
    if (data := record.body.get("error")) is not None:
        error: Any = codec.decode(data, record.key)
        return {
            "type": "workflow_failed",
            "status": "failed",
            "error": describe_error(error),
            "exception": error,
        }
    status = record.outcome["status"]
    if status == "interrupted":
        return {
            "type": "workflow_interrupted",
            "status": status,
            "interrupts": state.interrupts,
            "output": state.output,
        }
    return {
        "type": "workflow_completed",
        "status": status,
        "output": state.output,
        "steps": state.steps,
    }
