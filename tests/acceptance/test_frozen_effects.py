"""A worker that hangs in the middle of an effect and wakes when it was taken over changes nothing.

SIGSTOP stops all of a process, and with it the renewal of its leases.
"""

import pytest
from harness.cluster import Cluster
from harness.deadline import until

from dapr_runners.effects import DeadLetters, EffectStatus, EffectUnknownError

pytestmark = pytest.mark.timeout(300)
_MODES = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
_INPUT = {"log": []}
_RESULT = ["prepared", "receipt for order 7", "finalized"]


def _rows(cluster: Cluster) -> dict[str, bytes]:
    """What is stored of the run and of its checkpoints."""
    # Who works is said every so often, run or no run.
    shared = ("dr/workers/", "dr/processes")
    stored = cluster.stored().items()
    return {key: value for key, value in stored if not any(each in key for each in shared)}


@_MODES
def test_a_frozen_worker_changes_nothing_when_it_wakes(is_async: bool, cluster: Cluster) -> None:
    cluster.use("effect_graphs:short_lease", is_async)
    cluster.effects.arm("charged", "hold")
    caller = cluster.caller()
    caller.send("call", "thread", _INPUT)
    frozen = cluster.worker()
    cluster.effects.wait("charged")
    frozen.freeze()
    other = cluster.worker()
    # Nobody sees that the first is dead, as it is not: its lease has to run out.
    assert caller.reply()["log"] == _RESULT
    assert cluster.effects.count("charge") == 1
    assert cluster.effects.count("lookup") == 1
    run = cluster.run_of("thread")
    until(lambda: other.ask("status", run) == "COMPLETED")
    before = _rows(cluster)
    frozen.thaw()
    cluster.effects.release("charged")
    until(lambda: _complaint(frozen.log_text()))
    assert _rows(cluster) == before
    assert cluster.effects.count("charge") == 1


def _complaint(log: str) -> str:
    return log if "was taken over while" in log else ""


def test_a_frozen_worker_does_not_undo_that_its_run_is_parked(cluster: Cluster) -> None:
    cluster.use("effect_graphs:short_lease_undecided")
    cluster.effects.arm("charged", "hold")
    caller = cluster.caller()
    caller.send("call", "thread", _INPUT)
    frozen = cluster.worker()
    cluster.effects.wait("charged")
    frozen.freeze()
    cluster.worker()
    with pytest.raises(EffectUnknownError):
        caller.reply()
    letters = DeadLetters(port=cluster.sidecar.grpc_port)
    (letter,) = letters.list()
    frozen.thaw()
    cluster.effects.release("charged")
    until(lambda: _complaint(frozen.log_text()))
    record = letters.get(letter.id).record
    assert record is not None
    assert record.execution_status is EffectStatus.UNKNOWN
    letters.resolve(letter.id, "receipt 12", who="me", why="I looked")
    assert caller.ask("call", "thread", _INPUT)["log"][1] == "receipt 12"
    assert cluster.effects.count("charge") == 1
