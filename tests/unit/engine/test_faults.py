"""What a sidecar's answers mean, in the words of daprd 1.18.3."""

from typing import Any

import grpc
import pytest

from dapr_runners.engine import (
    ActorStoreDownError,
    ActorStoreMissingError,
    WorkflowEngineUnavailableError,
    sidecar_fault,
)
from dapr_runners.state import SidecarUnreachableError, UnauthorizedError


class Answer(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, detail: str) -> None:
        self.code: Any = lambda: code
        self.details: Any = lambda: detail


@pytest.mark.parametrize(
    ("code", "detail", "expected"),
    [
        ("UNAVAILABLE", "failed to connect to all addresses", SidecarUnreachableError),
        ("UNAVAILABLE", "placement service is not configured", WorkflowEngineUnavailableError),
        ("UNAUTHENTICATED", "Unauthorized", UnauthorizedError),
        (
            "UNKNOWN",
            "failed to load workflow metadata: dial tcp [::1]:6379: connect: connection refused",
            ActorStoreDownError,
        ),
        (
            "INTERNAL",
            "failed to load workflow metadata: api error: code = Internal desc = the state store is"
            " not configured to use the actor runtime.",
            ActorStoreMissingError,
        ),
    ],
)
def test_an_answer(code: str, detail: str, expected: type[Exception]) -> None:
    error = sidecar_fault("127.0.0.1:50001", Answer(grpc.StatusCode[code], detail))
    assert type(error) is expected
    assert "127.0.0.1:50001" in str(error)
