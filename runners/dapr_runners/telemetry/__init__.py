"""OpenTelemetry: one trace a run, GenAI conventions for models and tools, metrics.

Off unless :func:`instrument` is called.
"""

try:
    import opentelemetry.sdk.trace  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as error:
    raise ImportError(
        "OpenTelemetry is not installed. Install it with: pip install 'dapr-runners[otel]'"
    ) from error

from dapr_runners.telemetry._instrument import instrument, uninstrument
from dapr_runners.telemetry.errors import UnsupportedTracerProviderError

__all__ = ["UnsupportedTracerProviderError", "instrument", "uninstrument"]
