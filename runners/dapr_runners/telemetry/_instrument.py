"""Switching on and off."""

import os

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from dapr_runners.engine import watching
from dapr_runners.telemetry._telemetry import Telemetry

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    *,
    capture_content: bool | None = None,
) -> None:
    """Trace and measure all runs of all runners of this process, from now on, with these providers
    (default: the global ones, whenever they are set). Call it in every process that works on runs
    or starts them.

    ``capture_content`` puts prompts, answers, arguments and results of tools and the texts of
    errors on the spans (default: as OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says, which
    is ``true`` or, without it, no). Raises :class:`UnsupportedTracerProviderError` for a provider
    that is not the SDK's.
    """
    if capture_content is None:
        said = os.environ.get(CAPTURE, "").strip().lower()
        capture_content = said in ("true", "span_only", "span_and_event")
    watching().watcher = Telemetry(tracer_provider, meter_provider, capture_content)


def uninstrument() -> None:
    """End of :func:`instrument`. Spans that are open end as they would have."""
    watching().watcher = None
