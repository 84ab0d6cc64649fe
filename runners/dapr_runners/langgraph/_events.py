"""The events of ``run_async``: plain dicts, in order, each with an id that is stable over
reconnects.

==========================  =====================================================================
``workflow_started``        ``workflow_id``, ``thread_id``, ``graph_name``
``step_planned``            ``step`` (superstep number), ``nodes`` (names)
``step_completed``          ``step``, ``node``, ``attempt``
``updates`` / ``values`` /  ``data``: what LangGraph's stream mode of that name gives
other stream modes
``workflow_interrupted``    ``interrupts``: what is asked; the next call on the thread answers
``workflow_completed``      ``output`` (the state), ``steps``, ``status`` ("completed")
``workflow_failed``         ``error``: ``message``, ``error_type``, ``stack_trace``; ``exception``
==========================  =====================================================================
"""

from collections.abc import AsyncIterator
from typing import Any

from dapr_runners.engine import Chunk, Claim, Record
from dapr_runners.state import Codec, describe_traceback


async def run_events(
    log: AsyncIterator[Chunk | Record],
    codec: Codec,
    graph_name: str,
    claim: Claim,
    spec: dict[str, Any],
) -> AsyncIterator[dict[str, Any]]:
    """The events of one run."""
    run = claim.run
    common = {"workflow_id": run}
    arguments: Any = codec.decode(spec["arguments"], run)
    yield {
        "type": "workflow_started",
        "id": f"{run}/started",
        **common,
        "thread_id": claim.thread,
        "graph_name": graph_name,
    }
    state = _Outcome()
    async for event in log:
        if isinstance(event, Chunk):
            mode, ns, data = _split(codec.decode(event.data, event.id), arguments)
            state.see(mode, ns, data)
            shown: dict[str, Any] = {"type": mode, "id": event.id, **common, "data": data}
            if ns:
                shown["namespace"] = ns
            yield shown
        else:
            for number, found in enumerate(_of_record(event, state, codec)):
                yield {"id": f"{run}/{event.key}/{number}", **common, **found}


class _Outcome:
    """What the stream said of the result."""

    def __init__(self) -> None:
        self.output: Any = None
        self.interrupts: list[Any] = []
        self.names: dict[str, str] = {}
        self.steps = 0

    def see(self, mode: str, ns: Any, data: Any) -> None:
        if ns:
            return
        if mode == "values":
            self.output = data
        elif mode == "updates" and isinstance(data, dict) and "__interrupt__" in data:
            self.interrupts.extend(data["__interrupt__"])


def _of_record(record: Record, state: _Outcome, codec: Codec) -> list[dict[str, Any]]:
    outcome = record.outcome
    match outcome["k"]:
        case "plan":
            done = _fused_before(record, state)
            nodes = [step["name"] for step in outcome["steps"]]
            state.names.update({step["id"]: step["name"] for step in outcome["steps"]})
            number = record.body["step"]
            state.steps = max(state.steps, number)
            if len(nodes) == 1 and outcome["steps"][0].get("fuse"):
                state.names["fused"] = nodes[0]
            planned = {"type": "step_planned", "step": number, "nodes": nodes}
            return [*done, planned]
        case "step":
            state.names.update({step["id"]: step["name"] for step in outcome.get("more") or ()})
            name = state.names.get(outcome["id"], outcome["id"])
            return [{"type": "step_completed", "node": name}]
        case "retry":
            return [{"type": "step_retry", "after": outcome["after"], "attempt": outcome["attempt"]}]
        case _:
            return [*_fused_before(record, state), _end(record, state, codec)]


def _fused_before(record: Record, state: _Outcome) -> list[dict[str, Any]]:
    """A fused step has no record of its own: the plan after it tells that it is done."""
    name = state.names.pop("fused", None)
    return [] if name is None else [{"type": "step_completed", "node": name}]


def _end(record: Record, state: _Outcome, codec: Codec) -> dict[str, Any]:
    if (data := record.body.get("error")) is not None:
        error: Any = codec.decode(data, record.key)
        return {
            "type": "workflow_failed",
            "status": "failed",
            "error": {
                "message": str(error),
                "error_type": type(error).__name__,
                "stack_trace": describe_traceback(error),
            },
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
        "steps": record.body.get("step", state.steps),
    }


def _split(chunk: Any, arguments: dict[str, Any]) -> tuple[str, Any, Any]:
    """``(mode, namespace, data)`` of a chunk, whatever shape the arguments gave it."""
    if arguments.get("version") == "v2":
        return chunk["type"], chunk["ns"], chunk["data"]
    mode = arguments.get("stream_mode")
    if arguments.get("subgraphs"):
        return (chunk[1], chunk[0], chunk[2]) if isinstance(mode, list) else (mode, *chunk)
    return (chunk[0], (), chunk[1]) if isinstance(mode, list) else (mode, (), chunk)
