"""Spans whose ids are given: what a span is below may begin, or end, in another process."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk import trace as sdk
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator

from dapr_runners import __version__
from dapr_runners.telemetry.errors import UnsupportedTracerProviderError

_SCOPE = "dapr_runners"


class _Ids(IdGenerator):
    """The ids that are given, or else those of ``ordinary``."""

    def __init__(self, ordinary: IdGenerator) -> None:
        self._ordinary = ordinary
        self._given = threading.local()

    @contextmanager
    def given(self, span_id: int | None, trace_id: int | None) -> Generator[None]:
        self._given.span_id, self._given.trace_id = span_id, trace_id
        try:
            yield
        finally:
            self._given.span_id = self._given.trace_id = None

    def generate_span_id(self) -> int:
        return getattr(self._given, "span_id", None) or self._ordinary.generate_span_id()

    def generate_trace_id(self) -> int:
        return getattr(self._given, "trace_id", None) or self._ordinary.generate_trace_id()


class Spans:
    """Makes spans of a provider; of the global one by default, as soon as that is set."""

    def __init__(self, provider: trace.TracerProvider | None) -> None:
        self._provider = provider
        self._made: tuple[sdk.Tracer, _Ids] | None = None
        self._lock = threading.Lock()
        self._tracer()  # raises at once where it can never be

    def _tracer(self) -> tuple[sdk.Tracer, _Ids] | None:
        """None while there is no provider, or tracing is switched off."""
        if self._made is not None:
            return self._made
        provider = self._provider or trace.get_tracer_provider()
        tracer = provider.get_tracer(_SCOPE, __version__)
        if not isinstance(tracer, sdk.Tracer):
            if isinstance(tracer, (trace.NoOpTracer, trace.ProxyTracer)):
                return None
            raise UnsupportedTracerProviderError(provider=type(provider).__name__)
        with self._lock:
            if self._made is None:
                ids = _Ids(tracer.id_generator)
                tracer.id_generator = ids
                self._made = tracer, ids
        return self._made

    def start(
        self,
        name: str,
        context: Context | None,
        attributes: dict[str, Any],
        *,
        span_id: int | None = None,
        trace_id: int | None = None,
        began: float | None = None,
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
    ) -> trace.Span:
        """A span that has begun, ``began`` seconds after the epoch or now. ``context`` holds its
        parent; without one in it, ``trace_id`` is that of its trace."""
        made = self._tracer()
        if made is None:
            return trace.NonRecordingSpan(trace.get_current_span(context).get_span_context())
        tracer, ids = made
        at = None if began is None else nanoseconds(began)
        with ids.given(span_id, trace_id):
            return tracer.start_span(name, context, kind=kind, attributes=attributes, start_time=at)

    def sampled(
        self, name: str, context: Context, trace_id: int, attributes: dict[str, Any]
    ) -> tuple[bool, trace.TraceState | None]:
        """Whether a span would be, and the state of its trace."""
        made = self._tracer()
        if made is None:
            return False, None
        result = made[0].sampler.should_sample(
            context, trace_id, name, trace.SpanKind.INTERNAL, attributes
        )
        return result.decision.is_sampled(), result.trace_state

    def new_ids(self) -> tuple[int, int]:
        """Of a trace and of a span."""
        made = self._tracer()
        ids: IdGenerator = RandomIdGenerator() if made is None else made[1]
        return ids.generate_trace_id(), ids.generate_span_id()


def nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def fail(span: trace.Span, error: BaseException, says: bool) -> None:
    """Note on ``span`` that it ended with ``error``; what the error ``says`` may quote a prompt."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    span.set_attribute("error.type", name)
    span.set_status(trace.Status(trace.StatusCode.ERROR, str(error) if says else name))
