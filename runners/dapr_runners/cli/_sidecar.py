"""Which sidecar a command is about."""

import os


def address_of(grpc_port: int | None) -> str:
    """``host:port`` of the sidecar: its port if given, else as the Dapr SDK finds it."""
    from dapr_runners.state import sidecar_address

    if grpc_port is not None:
        return f"{os.environ.get('DAPR_RUNTIME_HOST', '127.0.0.1')}:{grpc_port}"
    return sidecar_address()
