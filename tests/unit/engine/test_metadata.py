"""Which service a sidecar lacks, from what it says of itself."""

import pytest
from dapr.proto import api_v1

from dapr_runners.engine import _metadata
from dapr_runners.engine._metadata import missing_service, missing_service_of

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


class Clock:
    """Time that passes when somebody sleeps."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(("back_after", "missing"), [(1.0, False), (24.0, False), (99.0, True)])
def test_a_scheduler_that_was_killed_is_waited_for(
    back_after: float,
    missing: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()

    def metadata(_address: str) -> api_v1.GetMetadataResponse:
        there = {"scheduler": SCHEDULER} if clock.now >= back_after else {}
        return api_v1.GetMetadataResponse(
            runtime_version="1.18.3", actor_runtime=CONNECTED, **there
        )

    monkeypatch.setattr(_metadata, "time", clock)
    monkeypatch.setattr(_metadata, "sidecar_metadata", metadata)
    lacked = "it is not connected to the scheduler service"
    assert missing_service("here:1") == (lacked if missing else None)
    assert clock.now < 31
    told = f"the sidecar at here:1 cannot run workflows yet ({lacked}); waiting for up to 30 s"
    assert caplog.messages == ([] if back_after < 3 else [told])
