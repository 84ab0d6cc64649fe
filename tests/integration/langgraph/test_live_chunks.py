"""Chunks of a node that runs in another process arrive while it runs."""

from pathlib import Path
from typing import Any

import pytest
from live_graph import WORDS, heard, make, make_fickle

from engines import Sidecar
from worker_processes import WorkerProcess

HERE = Path(__file__).parent


@pytest.mark.parametrize("live_pubsub", ["", "pubsub"], ids=["state store", "pub/sub"])
def test_a_chunk_is_heard_before_its_node_has_ended(
    sidecar: Sidecar,
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


@pytest.mark.parametrize("live_pubsub", ["", "pubsub"], ids=["state store", "pub/sub"])
def test_a_chunk_is_heard_elsewhere_too_where_the_first_caller_is_the_worker(
    sidecar: Sidecar,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    live_pubsub: str,
) -> None:
    monkeypatch.setenv("HEARD", str(tmp_path))
    [runner] = make(live_pubsub)
    runner.start()
    call: Any = {"input": {"said": []}, "config": {"configurable": {"thread_id": "t"}}}
    here = runner.stream(**call, stream_mode="custom")
    received = [next(here)]  # it runs, and is heard here
    variables = {**sidecar.env(), "HEARD": str(tmp_path), "LISTEN": "1"}
    with WorkerProcess(HERE, "live_graph:listen", live_pubsub, variables=variables):
        received += list(here)  # goes on when the other has heard
    runner.shutdown()
    assert tuple(received) == WORDS


def test_what_a_node_says_when_it_runs_again_is_heard_whatever_it_said_before(
    sidecar: Sidecar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEARD", str(tmp_path))
    variables = {**sidecar.env(), "HEARD": str(tmp_path)}
    [runner] = make_fickle()
    runner.connect()
    worker = WorkerProcess(HERE, "live_graph:make_fickle", variables=variables).wait_until_ready()
    received: list[Any] = []
    for mode, chunk in runner.stream({"said": []}, stream_mode=["custom", "updates", "values"]):
        received.append((mode, chunk))
        if chunk == WORDS[-1]:
            worker.kill()
            heard("again").touch()
            worker = WorkerProcess(HERE, "live_graph:make_fickle", variables=variables)
            worker.wait_until_ready()
    worker.stop()
    runner.shutdown()
    said = ["one", "then"]  # the first is under the id that it was told of with before
    assert received == [
        ("values", {"said": []}),
        *(("custom", word) for word in WORDS),
        ("custom", "then"),
        ("updates", {"mutter": {"said": said}}),
        ("values", {"said": said}),
    ]
