"""Watches the runs of a process, as spans and metrics."""

import time
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.metrics import MeterProvider

from dapr_runners.engine import Watch, Work
from dapr_runners.telemetry._item import ItemWatch
from dapr_runners.telemetry._metrics import Metrics
from dapr_runners.telemetry._run_trace import RunTrace
from dapr_runners.telemetry._spans import Spans, fail, nanoseconds


class Telemetry:
    """What watches a process once it is instrumented. ``captures`` says whether content is put on
    spans."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: MeterProvider | None,
        captures: bool,
    ) -> None:
        self.spans = Spans(tracer_provider)
        self.metrics = Metrics(meter_provider)
        self.captures = captures

    def scheduling(self, runner: str) -> dict[str, Any]:
        """The trace of a run that is about to be scheduled, as its items tell it."""
        caller = trace.get_current_span().get_span_context()
        trace_id, span_id = self.spans.new_ids()
        if caller.is_valid:
            trace_id = caller.trace_id
        name, about = _run_span(runner)
        sampled, state = self.spans.sampled(name, contexts.get_current(), trace_id, about)
        told: dict[str, Any] = {
            "traceparent": f"00-{trace_id:032x}-{span_id:016x}-{int(sampled):02x}",
            "at": time.time(),
        }
        if caller.is_valid:
            told["parent"] = f"{caller.span_id:016x}"
        if state:
            told["tracestate"] = state.to_header()
        return told

    def watch(self, runner: str, work: Work, identity: str | None) -> Watch:
        """For one item."""
        return ItemWatch(self, runner, work, identity)

    def ended(
        self, runner: str, item: dict[str, Any], status: str, about: dict[str, Any], at: float
    ) -> None:
        """The span of a run, which has ended."""
        of = RunTrace.of(item)
        began: float = of.scheduled or about.get("began") or at
        name, attributes = _run_span(runner)
        attributes["dapr_runners.run.id"] = of.run
        attributes["dapr_runners.run.status"] = status
        if about.get("thread") is not None:
            attributes["gen_ai.conversation.id"] = about["thread"]
        if about.get("tenant"):
            attributes["dapr_runners.tenant.id"] = about["tenant"]
        span = self.spans.start(
            name,
            of.below_caller(),
            attributes,
            span_id=of.span_id,
            trace_id=of.trace_id,
            began=began,
        )
        if (error := about.get("error")) is not None:
            fail(span, error, self.captures)
        elif status == "failed":
            span.set_status(trace.StatusCode.ERROR)
        span.end(nanoseconds(max(at, began)))
        self.metrics.run_ended(runner, status, max(at - began, 0.0))

    def answered(self, runner: str, item: dict[str, Any], name: str, asked: float | None) -> None:
        """The span of a step that waited for a person."""
        of, task = RunTrace.of(item), item["task"]
        attributes = {
            "dapr_runners.run.id": of.run,
            "dapr_runners.step.id": task,
            "dapr_runners.step.name": name,
            "dapr_runners.waits_for": "person",
        }
        now = time.time()
        began = asked or now
        span = self.spans.start(
            f"step {name}",
            of.below(of.span_id),
            attributes,
            span_id=of.step(task),
            began=began,
        )
        span.end(nanoseconds(now))
        self.metrics.step(runner, name, now - began, None)
        self.metrics.waited_for_person(runner, name, now - began)

    def unknown_effect(self, effect: str) -> None:
        """It was found that nobody knows whether an effect has happened."""
        self.metrics.unknown_effect(effect)
        trace.get_current_span().add_event(
            "dapr_runners.effect.unknown", {"dapr_runners.effect": effect}
        )


def _run_span(runner: str) -> tuple[str, dict[str, Any]]:
    return f"invoke_agent {runner}", {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": runner,
        "dapr_runners.runner": runner,
    }
