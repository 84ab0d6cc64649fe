"""A process that is instrumented for one test."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from exported import Instrumented, provider_to
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.telemetry import instrument, uninstrument
from engines import Engine, Sidecar
from quiet_crewai import settle

settle()

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # CrewAI's own
    import crewai  # noqa: F401


@pytest.fixture(autouse=True)
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry is on, here and in worker processes: other tests turn it off for CrewAI."""
    monkeypatch.delenv("OTEL_SDK_DISABLED", raising=False)


@pytest.fixture
def told(enabled: None) -> Iterator[Instrumented]:
    """What this process tells while a test runs."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = provider_to(exporter)
    meters = MeterProvider([reader])
    instrument(provider, meters)
    yield Instrumented(provider, exporter, reader)
    uninstrument()
    provider.shutdown()
    meters.shutdown()


@pytest.fixture(scope="session")
def traced_sidecar(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with engine.sidecar(tmp_path_factory.mktemp("telemetry")) as running:
        yield running


@pytest.fixture
def make_runner(traced_sidecar: Sidecar) -> Iterator[Callable[..., Any]]:
    """Makes runners that work."""
    made: list[Any] = []

    def make(graph: Any, kind: Any = DaprWorkflowGraphRunner, **options: Any) -> Any:
        options.setdefault("name", f"traced-{uuid4().hex[:8]}")
        made.append(kind(graph, port=traced_sidecar.grpc_port, **options))
        made[-1].start()
        return made[-1]

    yield make
    for runner in reversed(made):
        runner.shutdown()
        runner.store.close()
