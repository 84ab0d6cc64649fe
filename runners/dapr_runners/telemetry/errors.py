"""Errors of the telemetry."""

from dataclasses import dataclass

from dapr_runners.errors import DaprRunnersError


@dataclass(eq=False)
class UnsupportedTracerProviderError(DaprRunnersError):
    """The tracer provider, a {provider}, makes no tracers of OpenTelemetry's SDK, and only those
    can join the spans of a run that goes on in another process. Nothing is traced. Pass
    instrument(tracer_provider=...) an opentelemetry.sdk.trace.TracerProvider."""

    provider: str
