"""Which service a sidecar lacks, from what it says of itself."""

import pytest
from dapr.proto import api_v1

from dapr_runners.engine._metadata import missing_service_of

CONNECTED = api_v1.ActorRuntime(placement="placement: connected")
DISCONNECTED = api_v1.ActorRuntime(placement="placement: disconnected")
SCHEDULER = api_v1.MetadataScheduler(connected_addresses=["127.0.0.1:50006"])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"actor_runtime": CONNECTED, "scheduler": SCHEDULER}, None),
        (
            {"actor_runtime": DISCONNECTED, "scheduler": SCHEDULER},
            "it is not connected to the placement service",
        ),
        ({"actor_runtime": CONNECTED}, "it is not connected to the scheduler service"),
    ],
)
def test_daprd(answer: dict[str, object], expected: str | None) -> None:
    answered = api_v1.GetMetadataResponse(runtime_version="1.18.3", **answer)
    assert missing_service_of(answered) == expected


def test_the_embedded_sidecar_needs_neither() -> None:
    assert missing_service_of(api_v1.GetMetadataResponse(runtime_version="embedded")) is None
