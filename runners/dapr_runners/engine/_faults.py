"""What an error of the Dapr SDK's client means, in the words of this package."""

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import grpc

from dapr_runners.engine.errors import (
    ActorStoreDownError,
    ActorStoreMissingError,
    WorkerMissingError,
    WorkflowEngineUnavailableError,
)
from dapr_runners.state import SidecarUnreachableError, UnauthorizedError

_NO_STORE = "not configured to use the actor runtime"
"""What daprd says, of the same operation, when there is no such store at all."""


def sidecar_fault(address: str, error: grpc.RpcError) -> Exception:
    """The error to raise for ``error``, which a call to the sidecar at ``address`` raised."""
    call: Any = error
    detail: str = call.details() or ""
    match call.code():
        case grpc.StatusCode.UNAVAILABLE if "placement service is not" in detail:
            return WorkflowEngineUnavailableError(address=address, detail=detail)
        case grpc.StatusCode.UNAVAILABLE:
            return SidecarUnreachableError(address=address, detail=detail)
        case grpc.StatusCode.UNAUTHENTICATED:
            return UnauthorizedError(address=address)
        case grpc.StatusCode.FAILED_PRECONDITION if "did not find address" in detail:
            # A sidecar knows a workflow while there is a worker for it.
            return WorkerMissingError(address=address)
        case _ if "failed to load workflow metadata" in detail and _NO_STORE not in detail:
            return ActorStoreDownError(address=address, detail=detail)
        case _ if "actor runtime" in detail or "state store" in detail:
            return ActorStoreMissingError(address=address)
        case _:
            return WorkflowEngineUnavailableError(address=address, detail=detail)


@contextmanager
def without_sdk_log() -> Generator[None]:
    """Keeps the SDK's client from logging, in this thread, the errors that it also raises."""
    thread = threading.get_ident()
    log = logging.getLogger("DaprWorkflowClient")

    def is_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != thread

    log.addFilter(is_elsewhere)
    try:
        yield
    finally:
        log.removeFilter(is_elsewhere)
