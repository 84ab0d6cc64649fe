"""Chunks of a node that runs in another process arrive while it runs."""

from pathlib import Path

import pytest
from live_graph import WORDS, heard, make

from dapr_runners.sidecar import EmbeddedSidecar
from worker_processes import WorkerProcess

HERE = Path(__file__).parent


@pytest.mark.parametrize("live_pubsub", ["", "pubsub"], ids=["state store", "pub/sub"])
def test_a_chunk_is_heard_before_its_node_has_ended(
    sidecar: EmbeddedSidecar,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    live_pubsub: str,
) -> None:
    monkeypatch.setenv("HEARD", str(tmp_path))
    variables = {**sidecar.env(), "HEARD": str(tmp_path)}
    with WorkerProcess(HERE, "live_graph:make", live_pubsub, variables=variables):
        [runner] = make(live_pubsub)
        runner.connect()
        received: list[str] = []
        for word in runner.stream({"said": []}, stream_mode="custom"):
            received.append(word)
            heard(word).touch()
        runner.shutdown()
    assert tuple(received) == WORDS
