"""Whether what answers at an address is a Dapr sidecar that lets us in."""

import os
import socket
from typing import Any

from dapr_runners.cli._findings import Finding

_CONNECT_SECONDS = 3.0
_ANSWER_SECONDS = 5
_TRIES = 3
"""A connection may break on a busy machine; to something else than a sidecar there is none."""


def reach(address: str) -> tuple[Any, Finding | None]:
    """The sidecar's metadata, None where it does not tell; and what is wrong, if anything is."""
    import grpc

    code, detail = grpc.StatusCode.OK, ""
    for _ in range(_TRIES):
        metadata, code, detail = _ask(address)
        if code is grpc.StatusCode.OK:
            return metadata, None
        if code is not grpc.StatusCode.UNAVAILABLE or not _listens(address):
            break
    match code:
        case grpc.StatusCode.UNAUTHENTICATED:
            return None, _token(address)
        case grpc.StatusCode.UNAVAILABLE if not _listens(address):
            return None, Finding(
                "sidecar",
                "problem",
                f"nothing listens at {address}: {_one_line(detail)}",
                "start the program with `dapr-runners run -- python app.py` or `dapr run --app-id"
                " NAME -- python app.py`, or point DAPR_GRPC_PORT at the sidecar's gRPC port. One"
                " that ended at once says why in its log; with --resources-path, its component"
                " files are looked at here",
            )
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return None, Finding(
                "sidecar",
                "problem",
                f"what listens at {address} takes connections and did not answer within"
                f" {_ANSWER_SECONDS} s: it hangs, or is no Dapr sidecar",
                "look at its log, and restart it",
            )
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.UNIMPLEMENTED:
            return None, Finding(
                "port",
                "problem",
                f"{address} is taken by something that is not a Dapr sidecar's gRPC port:"
                f" {_one_line(detail)}",
                "point DAPR_GRPC_PORT at the sidecar's gRPC port (--dapr-grpc-port, not"
                " --dapr-http-port), or give the sidecar a free one",
            )
        case _:
            return None, Finding(
                "sidecar",
                "warning",
                f"the one at {address} does not tell about itself ({code.name}): what follows"
                " from its metadata is not checked",
                "allow its metadata API, if the Configuration forbids it",
            )


def _ask(address: str) -> tuple[Any, Any, str]:
    """The sidecar's metadata; and else, the status code and what it says."""
    import grpc

    from dapr_runners.engine import sidecar_metadata

    try:
        return sidecar_metadata(address, _ANSWER_SECONDS), grpc.StatusCode.OK, ""
    except grpc.RpcError as error:
        call: Any = error
        return None, call.code(), call.details() or ""


def _token(address: str) -> Finding:
    given = "the DAPR_API_TOKEN of this process is not its own"
    if not os.environ.get("DAPR_API_TOKEN"):
        given = "it wants one, and DAPR_API_TOKEN is not set here"
    return Finding(
        "token",
        "problem",
        f"the sidecar at {address} refused the API token: {given}",
        "set DAPR_API_TOKEN here to the token that the sidecar was started with",
    )


def _listens(address: str) -> bool:
    """Whether something takes connections at ``host:port``."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
    except (OSError, ValueError):
        return False
    return True


def _one_line(detail: str) -> str:
    return " ".join(detail.split()) or "no more is known"
