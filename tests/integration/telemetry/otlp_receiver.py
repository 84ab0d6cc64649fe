"""A real OTLP receiver: what arrives is decoded as a collector decodes it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import (
    metrics_service_pb2,
    metrics_service_pb2_grpc,
)
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Receiver(
    trace_service_pb2_grpc.TraceServiceServicer, metrics_service_pb2_grpc.MetricsServiceServicer
):
    """Keeps the spans and the names of the metrics that arrive, and all bytes of both."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: list[Any] = []
        self.metrics: set[str] = set()
        self.data = b""
        self.port = 0

    # The names are those of the protocol's methods: both services have one Export.
    def Export(self, request: Any, context: Any) -> Any:
        with self._lock:
            self.data += request.SerializeToString()
            if isinstance(request, trace_service_pb2.ExportTraceServiceRequest):
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        self._spans.extend(scope.spans)
                return trace_service_pb2.ExportTraceServiceResponse()
            for resource in request.resource_metrics:
                for scope in resource.scope_metrics:
                    self.metrics.update(metric.name for metric in scope.metrics)
            return metrics_service_pb2.ExportMetricsServiceResponse()

    @property
    def spans(self) -> list[Any]:
        with self._lock:
            return list(self._spans)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    server = grpc.server(ThreadPoolExecutor(4))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(receiver, server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(receiver, server)
    receiver.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield receiver
    server.stop(None).wait()
