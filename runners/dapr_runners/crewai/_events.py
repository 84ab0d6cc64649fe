"""The events of ``run_async``: plain dicts, in order, each with an ``id`` that is stable over
reconnects, the ``workflow_id``, and ``replayed``: whether it was recorded before this call attached
to the run.

A step is planned, then says its chunks, then is completed or failed, with retries in between. A
question is required, then received.

==========================  =====================================================================
``workflow_started``        ``session_id``, ``name``; ``agent_role`` of a runner for an agent
``step_planned``            ``step`` (key), ``kind`` ("llm", "tool", ...), ``name``; for a tool its
                            ``arguments``
``step_completed``,         ``step``, ``kind``, ``name``, ``attempt``, ``seconds``; with ``error``
``step_failed``             (``message``, ``error_type``) for one that raised
``llm_chunk``               ``step``, ``chunk``: what a streaming model says, as it says it
``step_retry``              ``step``, ``kind``, ``name``, ``after`` (seconds), ``attempt`` (next)
``human_input_required``    ``key`` (for answer()), ``prompt``, and what is known of the question
``human_input_received``    ``key``, ``step``
``workflow_parked``         ``step``, ``effect``, ``idempotency_key``: nobody knows whether it has
                            happened, and the run waits for a decision (see ``DeadLetters``)
``workflow_completed``      ``output`` (CrewAI's result object), ``final_response`` (its text),
                            ``iterations`` (LLM calls), ``status`` ("completed")
``workflow_failed``         ``error``: ``message``, ``error_type``, ``stack_trace``; ``exception``
==========================  =====================================================================
"""

from collections.abc import AsyncIterator, Callable
from typing import Any

from dapr_runners.crewai._history import outcome_in, told_by
from dapr_runners.crewai._outcomes import Known
from dapr_runners.engine import (
    Claim,
    EffectUnknownError,
    Log,
    Record,
    parked_event,
    until_parked,
)
from dapr_runners.state import Codec, describe_error

Event = dict[str, Any]


async def run_events(
    follow: Log,
    codec: Callable[[], Codec],
    claim: Claim,
    about: Event,
) -> AsyncIterator[Event]:
    """The events of one run. ``follow`` reads its log, and says when it has caught up with it."""
    run = claim.run
    common: Event = {"workflow_id": run, "replayed": not claim.started}
    yield {
        "type": "workflow_started",
        "id": f"{run}/started",
        **common,
        "session_id": claim.thread,
        **about,
    }
    story = _Story(codec)
    async for event in until_parked(follow(lambda: common.update(replayed=False))):
        if isinstance(event, EffectUnknownError):
            yield parked_event(event)
            return
        if isinstance(event, Record):
            for number, found in enumerate(story.of_record(event)):
                yield {"id": _id(run, event.key, number, found), **common, **found}
        else:
            said: Event = codec().decode(event.data, event.id)
            for found in story.planned(said["step"]):
                yield {"id": _id(run, event.id, 0, found), **common, **found}
            yield {"type": "llm_chunk", "id": event.id, **common, **said}


def _id(run: str, at: str, number: int, event: Event) -> str:
    """That a step is planned may be told with its first chunk, or with a record."""
    is_planned = event["type"] == "step_planned"
    return f"{run}/{event['step']}/planned" if is_planned else f"{run}/{at}/{number}"


class _Story:
    """What was planned, to tell of what came of it."""

    def __init__(self, codec: Callable[[], Codec]) -> None:
        self._codec = codec
        self._planned: dict[str, Event] = {}
        self._calls = 0

    def planned(self, key: str, **about: Any) -> list[Event]:
        """Tells once that the step ``key`` is planned: no plan tells of an LLM call that is
        performed on the way to one."""
        if key in self._planned:
            return []
        self._planned[key] = self._step(key) | about
        return [{"type": "step_planned", **self._planned[key]}]

    def of_record(self, record: Record) -> list[Event]:
        outcome = record.outcome
        match outcome["k"]:
            case "plan":
                return [*self._known(record), *self._plan(record)]
            case "step":
                return [self._settled(record, outcome_in(record))]
            case "retry":
                again = {"after": outcome["after"], "attempt": outcome["attempt"]}
                return [{"type": "step_retry", **self._step(outcome["id"]), **again}]
            case _:
                return [*self._known(record), self._end(record)]

    def _step(self, key: str) -> Event:
        kind = key.partition("!")[2].partition(".")[0]
        return self._planned.get(key, {"step": key, "kind": kind, "name": kind})

    def _known(self, record: Record) -> list[Event]:
        """What a plan has the outcome of: an LLM call that was performed to get there."""
        told = [one for one in told_by(record) if one.outcome is not None]
        events: list[Event] = []
        for call in [one for one in told if self._step(one.key)["kind"] == "llm"]:
            events += [*self.planned(call.key), self._settled(record, call)]
        return events

    def _plan(self, record: Record) -> list[Event]:
        asked: Event = self._codec().decode(record.body["asked"], record.key)
        events: list[Event] = []
        for step in record.outcome["steps"]:
            key, name = step["id"], step["name"]
            if step.get("wait"):
                at = f"{record.key}:{key}"
                events.append({"type": "human_input_required", "key": at, **asked[key]})
            else:
                arguments = {k: v for k, v in asked[key].items() if k == "arguments"}
                events += [event | arguments for event in self.planned(key, name=name)]
        return events

    def _settled(self, record: Record, known: Known) -> Event:
        about, outcome = self._step(known.key), known.outcome
        assert outcome is not None
        if about["kind"] == "human":
            return {"type": "human_input_received", "key": record.key, "step": known.key}
        self._calls += about["kind"] == "llm"
        took = {"attempt": record.attempt, "seconds": outcome.took}
        event = {"type": "step_completed", **about, **took}
        if outcome.kind != "value":
            error: Any = self._codec().decode(outcome.data, known.key)
            event |= {"type": "step_failed", "error": _described(error)}
        return event

    def _end(self, record: Record) -> Event:
        codec = self._codec()
        if (data := record.body.get("error")) is not None:
            error: Any = codec.decode(data, record.key)
            return {
                "type": "workflow_failed",
                "status": "failed",
                "error": describe_error(error),
                "exception": error,
            }
        output: Any = codec.decode(record.body["result"], record.key)
        return {
            "type": "workflow_completed",
            "status": record.outcome["status"],
            "output": output,
            "final_response": getattr(output, "raw", output),
            "iterations": self._calls,
        }


def _described(error: BaseException) -> Event:
    told = describe_error(error)
    return {"message": told["message"], "error_type": told["error_type"]}
