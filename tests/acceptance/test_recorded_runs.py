"""Runs that an older version of this package began, and whose worker died, end on this one.

``record_runs.py`` made what they left behind.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.cluster import Cluster
from harness.effects import Effects
from langgraph.types import Command
from record_runs import DIES_IN, HERE

from dapr_runners.sidecar import EmbeddedSidecar

_RECORDED = sorted(HERE.glob("recorded/*.db.gz"))


@pytest.fixture
def left_behind(
    request: pytest.FixtureRequest, tmp_path: Path, effects: Effects
) -> Iterator[Cluster]:
    """A sidecar with the database of a recorded run."""
    path = tmp_path / "recorded.db"
    path.write_bytes(gzip.decompress(request.param.read_bytes()))
    with EmbeddedSidecar(path) as sidecar:
        cluster = Cluster(sidecar, effects, tmp_path)
        cluster.use("upgrade_graphs:whole")
        yield cluster
        cluster.close()


@pytest.mark.parametrize(
    "left_behind", _RECORDED, indirect=True, ids=[path.name[:-6] for path in _RECORDED]
)
def test_a_recorded_run_ends(left_behind: Cluster, request: pytest.FixtureRequest) -> None:
    path: Path = request.node.callspec.params["left_behind"]
    node = path.name.removesuffix(".db.gz").rpartition("-")[2]
    worker = left_behind.worker()
    if DIES_IN[node] == 1:
        worker.ask("call", "thread", {"log": ["input"], "messages": [("user", "hello")]})
    result = worker.ask("call", "thread", Command(resume="yes"))
    inside = ["input", "plan", "left", "right", "yes"]
    assert result["log"] == [*inside, *inside, "draft", "check", "check", "last"]
    assert [message.content for message in result["messages"]] == ["hello", "left", "right"]
    # What was recorded before did not run again.
    before = {"left": ["plan"], "check": ["plan", "left", "right", "draft"]}[node]
    assert [left_behind.effects.count(f"{name} start") for name in before] == [0] * len(before)


def test_there_are_recorded_runs() -> None:
    assert len(_RECORDED) >= len(DIES_IN)
