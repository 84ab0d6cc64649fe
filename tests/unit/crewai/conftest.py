"""CrewAI, imported without its own warnings and telemetry."""

import os
import warnings

os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")
os.environ.setdefault("OTEL_SDK_DISABLED", "true")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import crewai  # noqa: F401
