"""End to end: two workers, the first of them killed, export over OTLP to a receiver."""

from collections import Counter
from pathlib import Path

import pytest
import traced_graphs as graphs
from exported import provider_to, until
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from otlp_receiver import Receiver, receiving
from test_killed_workers import caller, collect, leave_at

from dapr_runners.telemetry import instrument, uninstrument
from engines import Sidecar
from worker_processes import WorkerProcess

FOLDER = Path(__file__).parent


@pytest.mark.timeout(300)
def test_one_trace_over_otlp(sidecar: Sidecar, tmp_path: Path) -> None:
    entered, hold = tmp_path / "hold.entered", tmp_path / "hold"
    hold.touch()
    graph = graphs.asking_graph()
    with receiving() as receiver:
        endpoint = f"http://127.0.0.1:{receiver.port}"
        variables = {
            **sidecar.env(),
            graphs.HOLD: str(hold),
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }

        def worker() -> WorkerProcess:
            return WorkerProcess(FOLDER, "traced_graphs:traced_over_otlp", variables=variables)

        provider = provider_to(OTLPSpanExporter(endpoint=endpoint, insecure=True))
        instrument(provider)
        with worker() as first:
            with (
                provider.get_tracer("the caller's").start_as_current_span("caller") as span,
                caller(sidecar, "asking", graph) as runner,
            ):
                leave_at(runner, entered.exists)
            first.kill()
        hold.unlink()
        with worker(), caller(sidecar, "asking", graph) as runner:
            collect(runner)
            until(lambda: "invoke_agent asking" in names(receiver))
            until(lambda: "dapr_runners.runs.ended" in receiver.metrics)
        uninstrument()
        provider.shutdown()
        check(receiver, span.get_span_context())


def names(receiver: Receiver) -> Counter[str]:
    return Counter(span.name for span in receiver.spans)


def check(receiver: Receiver, context: trace.SpanContext) -> None:
    spans = receiver.spans
    assert names(receiver) == {
        "caller": 1,
        "invoke_agent asking": 1,
        "step asking": 1,
        "attempt asking": 2,
        "chat scripted-1": 1,
        "in held": 2,
        "step last": 1,
        "attempt last": 1,
        "in last": 1,
    }
    assert {span.trace_id for span in spans} == {context.trace_id.to_bytes(16)}
    assert len({span.span_id for span in spans}) == len(spans)
    by_id = {span.span_id: span.name for span in spans}
    parents = {(span.name, by_id.get(span.parent_span_id, "")) for span in spans}
    assert parents == {
        ("caller", ""),
        ("invoke_agent asking", "caller"),
        ("step asking", "invoke_agent asking"),
        ("attempt asking", "step asking"),
        ("chat scripted-1", "attempt asking"),
        ("in held", "attempt asking"),
        ("step last", "invoke_agent asking"),
        ("attempt last", "step last"),
        ("in last", "attempt last"),
    }
    (chat,) = [span for span in spans if span.name == "chat scripted-1"]
    assert chat.kind == chat.SPAN_KIND_CLIENT
    assert b"secret" not in receiver.data
    assert {"dapr_runners.attempts.lost", "dapr_runners.step.duration"} <= receiver.metrics
