"""Spans that processes of a test export, and what tests ask of them."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@dataclass(frozen=True)
class Span:
    """A span as it was exported; ids are hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    is_error: bool
    attributes: dict[str, Any]
    began: str
    ended: str


@dataclass
class Spans:
    """What was exported, in the order in which it was."""

    all: list[Span] = field(default_factory=list[Span])

    def named(self, name: str) -> list[Span]:
        return [span for span in self.all if span.name == name]

    def one(self, name: str) -> Span:
        (span,) = self.named(name)
        return span

    def parent_of(self, span: Span) -> Span:
        (parent,) = [one for one in self.all if one.span_id == span.parent_id]
        return parent

    def tree(self, caller: str) -> list[str]:
        """Each span as ``name < its parent's name < ... < caller``, sorted. Fails if a parent is
        not there, or a span is there twice."""
        ids = [span.span_id for span in self.all]
        assert len(set(ids)) == len(ids)
        assert len({span.trace_id for span in self.all}) == 1
        return sorted(" < ".join(self._path(span, caller)) for span in self.all)

    def _path(self, span: Span, caller: str) -> Iterator[str]:
        yield span.name
        while span.parent_id != caller:
            span = self.parent_of(span)
            yield span.name


@dataclass
class Instrumented:
    """What this process tells."""

    provider: TracerProvider
    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader

    @property
    def spans(self) -> Spans:
        return spans_of(self.exporter.get_finished_spans())

    def ended(self, runner: str) -> Spans:
        """The spans of a run that has ended."""
        return until_ended(lambda: self.spans, runner)

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        data = self.reader.get_metrics_data()
        assert data is not None
        return [
            point
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for one in scope.metrics
            if one.name == metric
            for point in one.data.data_points
        ]


class FileExporter(SpanExporter):
    """Appends spans to a file, as JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        with self._path.open("a") as file:
            for span in spans:
                file.write(json.dumps(json.loads(span.to_json())) + "\n")
        return SpanExportResult.SUCCESS


def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    give_up_at = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def until_ended(read: Callable[[], Spans], runner: str) -> Spans:
    """The spans of a run, once its own is there: a caller may have the result a little before."""
    until(lambda: bool(read().named(f"invoke_agent {runner}")))
    return read()


def provider_to(exporter: SpanExporter) -> TracerProvider:
    """A provider that exports each span as soon as it has ended."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def spans_in(path: Path) -> Spans:
    """What :class:`FileExporter` wrote. Another process may be about to write the last line."""
    lines = path.read_text().splitlines(keepends=True)
    return Spans([_read(json.loads(line)) for line in lines if line.endswith("\n")])


def spans_of(exported: Sequence[ReadableSpan]) -> Spans:
    """What an exporter in memory holds."""
    return Spans([_read(json.loads(span.to_json())) for span in exported])


def _read(plain: dict[str, Any]) -> Span:
    return Span(
        plain["name"],
        plain["context"]["trace_id"].removeprefix("0x"),
        plain["context"]["span_id"].removeprefix("0x"),
        (plain["parent_id"] or "").removeprefix("0x"),
        plain["status"]["status_code"] == "ERROR",
        plain["attributes"],
        plain["start_time"],
        plain["end_time"],
    )
