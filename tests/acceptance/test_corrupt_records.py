"""Bytes that changed in the store: the run ends with an error that names the key, and at once."""

from collections.abc import Iterator

import pytest
from harness.cluster import Cluster
from harness.deadline import until

from dapr_runners.state import CorruptRecordError
from state_files import overwrite


def _damage(cluster: Cluster, key: str) -> None:
    """Change a byte in the middle of the value of ``key``, while nobody is looking."""
    value = cluster.stored()[key]
    middle = len(value) // 2
    damaged = value[:middle] + bytes([value[middle] ^ 0xFF]) + value[middle + 1 :]
    cluster.sidecar.kill()
    overwrite(cluster.sidecar, key, damaged)
    cluster.sidecar.start()


@pytest.fixture
def interrupted(cluster: Cluster) -> Iterator[Cluster]:
    """A run whose worker died in its second node."""
    cluster.use("chain_graphs:chain")
    cluster.effects.arm("middle in", "die")
    worker = cluster.worker()
    worker.send("call", "thread", {"log": ["x" * 100]})
    worker.wait_dead()
    yield cluster


@pytest.mark.parametrize("record", ["1", "spec"])
def test_a_damaged_record_ends_the_run(record: str, interrupted: Cluster) -> None:
    run = interrupted.run_of("thread")
    key = f"dr/run/{run}/{record}"
    _damage(interrupted, key)
    worker = interrupted.worker()
    until(lambda: worker.ask("status", run) == "COMPLETED")
    with pytest.raises(CorruptRecordError) as caught:
        worker.ask("call", "thread", {"log": ["x" * 100]})
    assert caught.value.key == key
    assert str(caught.value) == (
        f"The record {key!r} cannot be read back: {caught.value.reason}. The run that needs it "
        "cannot go on, and guessing would change its result. Restore the state store from a "
        "backup, or purge the run and start it again."
    )
    assert interrupted.effects.count("middle start") == 1


def test_purging_such_a_run_lets_it_start_again(interrupted: Cluster) -> None:
    run = interrupted.run_of("thread")
    _damage(interrupted, f"dr/run/{run}/1")
    worker = interrupted.worker()
    until(lambda: worker.ask("status", run) == "COMPLETED")
    worker.ask("purge", run)
    result = worker.ask("call", "thread", {"log": ["y"]})
    # After what the thread's saver, which is not the run's, has kept.
    assert result["log"][-4:] == ["y", "first", "middle", "last"]
