"""Every message class the sidecar takes from the Dapr SDK, and the only place that does.

The workflow protocol's messages are vendored in a private package of the SDK. Taking them from
there keeps one copy in the process (a second one would clash in protobuf's symbol pool), at the
price of a check here when the SDK moves them.
"""

from importlib.metadata import PackageNotFoundError, version

from dapr_runners.sidecar.errors import IncompatibleSdkError


def _installed() -> str:
    try:
        return version("dapr")
    except PackageNotFoundError:
        return "of unknown version"


try:
    from dapr.ext.workflow._durabletask.internal import orchestrator_service_pb2_grpc as task_hub
    from dapr.ext.workflow._durabletask.internal import protos as pb
    from dapr.proto import api_v1, appcallback_v1, common_v1
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.timestamp_pb2 import Timestamp
    from google.protobuf.wrappers_pb2 import StringValue
except ImportError as _error:
    raise IncompatibleSdkError(version=_installed(), reason=str(_error)) from _error

__all__ = [
    "STATEFUL_HISTORY",
    "Empty",
    "StringValue",
    "Timestamp",
    "api_v1",
    "appcallback_v1",
    "common_v1",
    "pb",
    "task_hub",
]

_NEEDED = (
    "ActivityRequest",
    "CompleteTaskResponse",
    "ExecutionStalledEvent",
    "HistoryEvent",
    "WorkItem",
    "WorkflowAction",
    "WorkflowRequest",
    "WorkflowState",
)

_missing = [name for name in _NEEDED if not hasattr(pb, name)]
if _missing:
    raise IncompatibleSdkError(version=_installed(), reason=f"no {', '.join(_missing)}")

STATEFUL_HISTORY: int | None = getattr(pb, "WORKER_CAPABILITY_STATEFUL_HISTORY", None)
"""What a worker advertises that keeps histories itself; None in SDKs before 1.19."""
