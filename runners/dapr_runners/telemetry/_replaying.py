"""What is current where a program is driven again over what is recorded."""

from collections.abc import Callable

from opentelemetry import trace

from dapr_runners.telemetry._run_trace import RunTrace


class ReplayingSpan(trace.NonRecordingSpan):
    """The span of a run, for the code of its program. What that does again, because another process
    has done it before, is not sampled: it was told then."""

    def __init__(self, of: RunTrace, is_replaying: Callable[[], bool]) -> None:
        super().__init__(of.span_context(of.span_id))
        self._again = of.span_context(of.span_id, is_sampled=False)
        self._is_replaying = is_replaying

    def get_span_context(self) -> trace.SpanContext:
        return self._again if self._is_replaying() else super().get_span_context()
