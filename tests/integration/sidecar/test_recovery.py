"""kill -9 of sidecar, worker, or both: everything goes on, nothing recorded is repeated."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from dapr.ext.workflow import DaprWorkflowClient
from dapr.proto import api_service_v1, api_v1, common_v1
from sidecar_helpers import WorkerProcess, eventually, finished, lines, reaches

from dapr_runners.sidecar import EmbeddedSidecar

StartWorker = Callable[[int], WorkerProcess]


@pytest.fixture
def own_client(sidecar: EmbeddedSidecar) -> Iterator[DaprWorkflowClient]:
    """A client of the test's own sidecar."""
    client = DaprWorkflowClient(host="127.0.0.1", port=str(sidecar.grpc_port))
    yield client
    client.close()


class Journal:
    """What the ``journal`` activity noted, and the gate it waits at."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.path = directory / "journal"

    def entry(self, name: str, gate: str = "open") -> dict[str, Any]:
        return {"name": name, "journal": str(self.path), "gate": str(self._directory / gate)}

    def open(self, gate: str = "open") -> None:
        (self._directory / gate).touch()

    def began(self, name: str) -> int:
        return sum(line.startswith(f"begin {name} ") for line in lines(self.path))

    def executions(self, name: str) -> set[str]:
        return {line.split()[2] for line in lines(self.path) if line.split()[1] == name}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


def test_a_killed_sidecar_takes_up_where_it_was(
    sidecar: EmbeddedSidecar,
    own_client: DaprWorkflowClient,
    start_worker: StartWorker,
    journal: Journal,
) -> None:
    start_worker(sidecar.grpc_port)
    journal.open()
    entries = [journal.entry("a"), journal.entry("b", "gate-b"), journal.entry("c")]
    instance_id = own_client.schedule_new_workflow("journaled", input=entries)
    eventually(lambda: journal.began("b"))
    sidecar.kill()
    sidecar.start()
    # It is given out again to the worker that comes back, while the first body still runs.
    eventually(lambda: journal.began("b") == 2)
    journal.open("gate-b")
    assert finished(own_client, instance_id) == ("COMPLETED", '["a", "b", "c"]')
    assert journal.began("a") == journal.began("c") == 1
    assert len(journal.executions("b")) == 1


def test_the_first_result_counts_whoever_was_asked(
    sidecar: EmbeddedSidecar,
    own_client: DaprWorkflowClient,
    start_worker: StartWorker,
    journal: Journal,
) -> None:
    """A worker's answer to the sidecar that was killed is good for the one that follows."""
    start_worker(sidecar.grpc_port)
    instance_id = own_client.schedule_new_workflow("journaled", input=[journal.entry("a")])
    eventually(lambda: journal.began("a"))
    sidecar.kill()
    journal.open()
    eventually(lambda: len(lines(journal.path)) == 2)
    sidecar.start()
    assert finished(own_client, instance_id) == ("COMPLETED", '["a"]')


def test_every_kind_of_wait_outlives_a_kill_of_everything(
    sidecar: EmbeddedSidecar,
    own_client: DaprWorkflowClient,
    start_worker: StartWorker,
    journal: Journal,
) -> None:
    worker = start_worker(sidecar.grpc_port)
    schedule = own_client.schedule_new_workflow
    activity = schedule("journaled", input=[journal.entry("activity")])
    timer = schedule("sleeping", input=2)
    event = schedule("waiting", input="go")
    early = schedule("waiting_for_many", input=3)
    own_client.raise_workflow_event(early, "item", data=1)
    guarded = schedule("two_waits", input=0.2)
    suspended = schedule("waiting", input="go")
    own_client.pause_workflow(suspended)
    child_id = "child-of-a-killed"
    child = {"workflow": "journaled", "input": [journal.entry("child")], "id": child_id}
    parent = schedule("parent", input=child)
    generations = schedule("generations", input={"n": 0, "got": []})
    own_client.raise_workflow_event(generations, "tick", data=1)
    done = schedule("sequence", input=2)
    assert finished(own_client, done) == ("COMPLETED", "[0, 1]")
    eventually(lambda: journal.began("activity") and journal.began("child"))

    sidecar.kill()
    worker.kill()
    journal.open()
    sidecar.start()
    start_worker(sidecar.grpc_port)

    for instance_id in (event, suspended):
        own_client.raise_workflow_event(instance_id, "go", data=5)
    own_client.resume_workflow(suspended)
    own_client.raise_workflow_event(guarded, "go", data=6)
    for number in (2, 3):
        own_client.raise_workflow_event(early, "item", data=number)
        own_client.raise_workflow_event(generations, "tick", data=number)
    expected = {
        activity: '["activity"]',
        timer: '"woken"',
        event: "5",
        suspended: "5",
        early: "[1, 2, 3]",
        guarded: '[6, "timed out"]',
        parent: '["child"]',
        generations: "[1, 2, 3]",
        done: "[0, 1]",
    }
    for instance_id, output in expected.items():
        assert finished(own_client, instance_id) == ("COMPLETED", output)


def test_another_worker_takes_over_at_once(
    sidecar: EmbeddedSidecar,
    own_client: DaprWorkflowClient,
    start_worker: StartWorker,
    journal: Journal,
) -> None:
    first = start_worker(sidecar.grpc_port)
    instance_id = own_client.schedule_new_workflow(
        "journaled", input=[journal.entry("a"), journal.entry("b")]
    )
    eventually(lambda: journal.began("a"))
    start_worker(sidecar.grpc_port)
    first.kill()
    eventually(lambda: journal.began("a") == 2)
    journal.open()
    assert finished(own_client, instance_id) == ("COMPLETED", '["a", "b"]')
    assert len(journal.executions("a")) == 1
    assert journal.began("b") == 1


def test_two_workers_share_the_work(
    sidecar: EmbeddedSidecar,
    own_client: DaprWorkflowClient,
    start_worker: StartWorker,
    journal: Journal,
) -> None:
    workers = [start_worker(sidecar.grpc_port) for _ in range(2)]
    names = [f"a{number}" for number in range(20)]
    instance_id = own_client.schedule_new_workflow(
        "journaled_at_once", input=[journal.entry(name) for name in names]
    )
    eventually(lambda: all(journal.began(name) for name in names))
    # What one had is given to the other: that is how many it had.
    workers[0].kill()
    eventually(lambda: sum(journal.began(name) == 2 for name in names) >= 8)
    journal.open()
    assert finished(own_client, instance_id) == ("COMPLETED", json.dumps(names))
    assert sum(journal.began(name) == 2 for name in names) <= 12


def test_a_frozen_worker_is_noticed(
    sidecar: EmbeddedSidecar,
    own_client: DaprWorkflowClient,
    start_worker: StartWorker,
    journal: Journal,
) -> None:
    frozen = start_worker(sidecar.grpc_port)
    instance_id = own_client.schedule_new_workflow("journaled", input=[journal.entry("a")])
    eventually(lambda: journal.began("a"))
    start_worker(sidecar.grpc_port)
    frozen.freeze()
    others = [own_client.schedule_new_workflow("sequence", input=1) for _ in range(4)]
    eventually(lambda: journal.began("a") == 2, "the frozen worker's work given out again")
    for other in others:
        assert finished(own_client, other) == ("COMPLETED", "[0]")
    journal.open()
    assert finished(own_client, instance_id) == ("COMPLETED", '["a"]')
    frozen.thaw()
    again = own_client.schedule_new_workflow("sequence", input=1)
    assert finished(own_client, again) == ("COMPLETED", "[0]")


def test_a_stalled_workflow_goes_on_when_messages_may_be_larger(
    sidecar: EmbeddedSidecar, own_client: DaprWorkflowClient, start_worker: StartWorker
) -> None:
    worker = start_worker(sidecar.grpc_port)
    instance_id = own_client.schedule_new_workflow("blobs", input=[4_150_000])
    reaches(own_client, instance_id, "STALLED")
    worker.kill()
    sidecar.stop()
    port, path = sidecar.grpc_port, sidecar.path
    with EmbeddedSidecar(path, grpc_port=port, max_body_size="16Mi") as larger:
        start_worker(larger.grpc_port)
        assert finished(own_client, instance_id) == ("COMPLETED", "4150000")


def test_workflows_survive_kill_after_kill(
    sidecar: EmbeddedSidecar,
    own_client: DaprWorkflowClient,
    start_worker: StartWorker,
    journal: Journal,
) -> None:
    """Kills at arbitrary moments of busy workflows; ids of activities tell what was repeated."""
    worker = start_worker(sidecar.grpc_port)
    journal.open()
    names = {number: [f"w{number}s{step}" for step in range(12)] for number in range(8)}
    ids = {
        number: own_client.schedule_new_workflow(
            "journaled", input=[journal.entry(name) for name in steps]
        )
        for number, steps in names.items()
    }
    for progress in (10, 30, 50):
        eventually(lambda at=progress: len(lines(journal.path)) >= 2 * at)
        sidecar.kill()
        worker.kill()
        sidecar.start()
        worker = start_worker(sidecar.grpc_port)
    for number, instance_id in ids.items():
        assert finished(own_client, instance_id) == ("COMPLETED", json.dumps(names[number]))
    every = [name for steps in names.values() for name in steps]
    assert all(len(journal.executions(name)) == 1 for name in every)
    # At most what was in flight in each workflow at each of the kills ran twice.
    assert sum(journal.began(name) - 1 for name in every) <= 3 * len(names)


def test_an_acknowledged_write_is_never_lost(sidecar: EmbeddedSidecar) -> None:
    acknowledged: set[str] = set()

    def write(writer: int) -> None:
        with grpc.insecure_channel(sidecar.address) as channel:
            stub: Any = api_service_v1.DaprStub(channel)
            for number in range(100_000):
                key = f"{writer}-{number}"
                items = [common_v1.StateItem(key=key, value=key.encode())]
                request = api_v1.SaveStateRequest(store_name="statestore", states=items)
                try:
                    stub.SaveState(request, timeout=60)
                except grpc.RpcError:
                    return
                acknowledged.add(key)

    for target in (50, 200, 400):
        writers = [threading.Thread(target=write, args=(target * 10 + n,)) for n in range(4)]
        for writer in writers:
            writer.start()
        eventually(lambda at=target: len(acknowledged) >= at)
        sidecar.kill()
        for writer in writers:
            writer.join()
        sidecar.start()
        with grpc.insecure_channel(sidecar.address) as channel:
            stub: Any = api_service_v1.DaprStub(channel)
            request = api_v1.GetBulkStateRequest(store_name="statestore", keys=sorted(acknowledged))
            found = {item.key: item.data for item in stub.GetBulkState(request).items}
        assert found == {key: key.encode() for key in acknowledged}


def test_an_acknowledged_schedule_or_event_is_never_lost(
    sidecar: EmbeddedSidecar, own_client: DaprWorkflowClient, start_worker: StartWorker
) -> None:
    worker = start_worker(sidecar.grpc_port)
    ids = [own_client.schedule_new_workflow("waiting_for_many", input=2) for _ in range(5)]
    for instance_id in ids:
        own_client.raise_workflow_event(instance_id, "item", data=1)
    sidecar.kill()
    worker.kill()
    sidecar.start()
    start_worker(sidecar.grpc_port)
    for instance_id in ids:
        own_client.raise_workflow_event(instance_id, "item", data=2)
        assert finished(own_client, instance_id) == ("COMPLETED", "[1, 2]")
