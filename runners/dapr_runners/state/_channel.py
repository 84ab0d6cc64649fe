"""The gRPC channel to a sidecar."""

import os

import grpc

_OPTIONS = [
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # A sidecar that restarts is found again at once; by default after up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def sidecar_address(host: str | None = None, port: str | int | None = None) -> str:
    """``host:port`` of the sidecar's gRPC endpoint: what is not given is from the same variables
    that the Dapr SDK reads. A ``host`` counts with a ``port`` only."""
    default = os.environ.get("DAPR_RUNTIME_HOST", "127.0.0.1")
    if port:
        return f"{host or default}:{port}"
    if endpoint := os.environ.get("DAPR_GRPC_ENDPOINT"):
        return endpoint
    return f"{default}:{os.environ.get('DAPR_GRPC_PORT', '50001')}"


def open_channel(address: str) -> grpc.Channel:
    """A channel without message limits to ``host:port``, with TLS for ``https://`` addresses."""
    for scheme in ("https://", "grpcs://"):
        if address.startswith(scheme):
            credentials = grpc.ssl_channel_credentials()
            return grpc.secure_channel(address.removeprefix(scheme), credentials, _OPTIONS)
    for scheme in ("http://", "grpc://"):
        address = address.removeprefix(scheme)
    return grpc.insecure_channel(address, _OPTIONS)
