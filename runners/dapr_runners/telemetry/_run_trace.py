"""The trace of a run, the same wherever the run goes on."""

import hashlib
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context

from dapr_runners.engine import AGAIN


@dataclass(frozen=True, slots=True)
class RunTrace:
    """What the items of a run tell of its trace. ``parent`` is the span of its caller, or 0;
    ``scheduled`` seconds since the epoch. A run that was scheduled by a process that traces nothing
    has a trace that follows from its id."""

    run: str
    trace_id: int
    span_id: int
    flags: trace.TraceFlags
    state: trace.TraceState
    parent: int
    scheduled: float | None
    again: int

    @classmethod
    def of(cls, item: dict[str, Any]) -> "RunTrace":
        run: str = item["run"]
        again: int = item.get(AGAIN, 0)
        told: dict[str, Any] | None = item.get("trace")
        if told is None:
            trace_id, sampled = _hashed(16, run), trace.TraceFlags(trace.TraceFlags.SAMPLED)
            span_id = _hashed(8, run, "run", again)
            return cls(run, trace_id, span_id, sampled, trace.TraceState(), 0, None, again)
        _, trace_hex, span_hex, flags = told["traceparent"].split("-")
        span_id = int(span_hex, 16)
        state = trace.TraceState.from_header([told["tracestate"]] if "tracestate" in told else [])
        return cls(
            run,
            int(trace_hex, 16),
            _hashed(8, span_id, again) if again else span_id,
            trace.TraceFlags(int(flags, 16)),
            state,
            int(told.get("parent", "0"), 16),
            told["at"],
            again,
        )

    def step(self, task: str) -> int:
        """Id of the span of the step ``task``."""
        return _hashed(8, self.trace_id, self.run, self.again, "step", task)

    def attempt(self, key: str, identity: str) -> int:
        """Id of the span of an attempt that the process ``identity`` went on to from its plan."""
        return _hashed(8, self.trace_id, self.run, self.again, "attempt", key, identity)

    def around(self, lane: str) -> int:
        """Id of the span that the steps of ``lane`` are below."""
        return self.step(lane[:-1].rpartition(":")[2]) if lane else self.span_id

    def span_context(self, span_id: int, *, is_sampled: bool = True) -> trace.SpanContext:
        flags = self.flags if is_sampled else trace.TraceFlags(0)
        return trace.SpanContext(self.trace_id, span_id, True, flags, self.state)

    def below(self, span_id: int) -> Context:
        """For what is below the span ``span_id``."""
        span = trace.NonRecordingSpan(self.span_context(span_id))
        return trace.set_span_in_context(span, Context())

    def below_caller(self) -> Context:
        """For what is below the span of the caller, if there is one."""
        return self.below(self.parent) if self.parent else Context()


def _hashed(size: int, *parts: object) -> int:
    text = "\0".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).digest()
    return int.from_bytes(digest) or 1
