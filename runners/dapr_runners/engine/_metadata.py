"""What a sidecar says of itself, and whether the services its workflow engine needs are there.

Without placement or scheduler daprd accepts calls for workflows and keeps them waiting, for ever
and in silence: its metadata tells.
"""

import logging
import os
import time
from typing import Any

import grpc
from dapr.proto import api_v1
from dapr.proto.runtime.v1 import dapr_pb2_grpc

from dapr_runners.state import open_channel

logger = logging.getLogger("dapr_runners")
_ANSWER_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0
"""A service that restarts is back in less. A scheduler that was killed answers nobody for 23 s,
until its lease has run out; placement connects nobody for 8 s while it waits for a dead sidecar."""
_SILENT_SECONDS = 3.0


def sidecar_metadata(address: str, timeout: float = _ANSWER_SECONDS) -> Any:
    """The metadata of the sidecar at ``address``, in ``timeout`` seconds. Raises grpc.RpcError."""
    return _ask(address, "GetMetadata", api_v1.GetMetadataRequest(), timeout)


def scheduler_answers(address: str, timeout: float) -> bool:
    """Whether the scheduler that the sidecar at ``address`` has is there, asked by looking for a
    job that does not exist. daprd goes on to list one that has died as connected."""
    try:
        _ask(address, "GetJobAlpha1", api_v1.GetJobRequest(name="dapr-runners-probe"), timeout)
    except grpc.RpcError as error:
        call: Any = error
        return call.code() is not grpc.StatusCode.DEADLINE_EXCEEDED
    return True


def _ask(address: str, method: str, request: Any, timeout: float) -> Any:
    token = os.environ.get("DAPR_API_TOKEN")
    with open_channel(address) as channel:
        call: Any = getattr(dapr_pb2_grpc.DaprStub(channel), method)
        return call(
            request, timeout=timeout, metadata=(("dapr-api-token", token),) if token else ()
        )


def missing_service(address: str) -> str | None:
    """What the sidecar at ``address`` cannot run workflows without and lacks, in words; None when
    there is nothing, or it does not tell."""
    began, has_told = time.monotonic(), False
    while True:
        try:
            missing = missing_service_of(sidecar_metadata(address))
        except grpc.RpcError:
            return None  # metadata may be forbidden where workflows are not
        waited = time.monotonic() - began
        if missing is None or waited > _PATIENCE_SECONDS:
            return missing
        if waited > _SILENT_SECONDS and not has_told:
            has_told = True
            text = "the sidecar at %s cannot run workflows yet (%s); waiting for up to %.0f s"
            logger.warning(text, address, missing, _PATIENCE_SECONDS)
        time.sleep(0.25)


def missing_service_of(answer: Any) -> str | None:
    """The same, of a sidecar that told ``answer`` of itself."""
    if answer.runtime_version == "embedded":
        return None
    if "disconnected" in answer.actor_runtime.placement:
        return "it is not connected to the placement service"
    if not answer.scheduler.connected_addresses:
        return "it is not connected to the scheduler service"
    return None
