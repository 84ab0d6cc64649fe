"""Programs that share an app id: each says which runners it has, and the doctor compares."""

import base64
from pathlib import Path

import pytest
from doctor_helpers import problems

from dapr_runners.engine import Member, roster
from dapr_runners.state import EncryptionKeyMissingError, StateStore
from engines import Sidecar
from worker_processes import WorkerProcess

pytestmark = pytest.mark.timeout(240)
FOLDER = Path(__file__).parent


@pytest.fixture(autouse=True)
def without_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dapr_runners.cli._doctor.begin_frameworks", lambda: lambda: iter(()))


def worker_of(sidecar: Sidecar, *runners: str, **variables: str) -> WorkerProcess:
    told = {**sidecar.env(), **variables}
    return WorkerProcess(FOLDER, "two_apps:make", *runners, variables=told)


def members(sidecar: Sidecar, number: int) -> list[Member]:
    """Those at work, once they are so many: each says so from a thread."""
    store = StateStore(address=sidecar.address)
    while len(found := roster(store)) != number:
        pass
    store.close()
    return found


def test_two_programs_of_one_app_id_with_different_runners(sidecar: Sidecar) -> None:
    with worker_of(sidecar, "orders", "bills") as one, worker_of(sidecar, "orders") as other:
        told = {each.shown: each.runners for each in members(sidecar, 2)}
        assert sorted(told.values()) == [("bills", "orders"), ("orders",)]
        found = problems(sidecar.grpc_port)
        assert list(found) == ["workers"]
        text = found["workers"]["text"]
        assert "different runners work under one app id" in text
        assert f"process {one.pid} on" in text and "has bills, orders" in text
        assert f"process {other.pid} on" in text and "has orders" in text
        assert "app id of its own (--app-id)" in found["workers"]["remedy"]
        other.kill()
        assert problems(sidecar.grpc_port, status=0) == {}


def test_replicas_are_no_problem(sidecar: Sidecar) -> None:
    with worker_of(sidecar, "orders", "bills"), worker_of(sidecar, "bills", "orders"):
        members(sidecar, 2)
        assert problems(sidecar.grpc_port, status=0) == {}


def test_who_ends_is_not_listed_any_more(sidecar: Sidecar) -> None:
    with worker_of(sidecar, "orders"):
        members(sidecar, 1)
    with worker_of(sidecar, "bills"):
        assert [each.runners for each in members(sidecar, 1)] == [("bills",)]


def test_workers_whose_keys_this_process_lacks(sidecar: Sidecar) -> None:
    key = base64.b64encode(bytes(32)).decode()
    with worker_of(sidecar, "orders", DAPR_RUNNERS_ENCRYPTION_KEYS=f"k1:{key}"):
        store = StateStore(address=sidecar.address)
        with pytest.raises(EncryptionKeyMissingError):
            while not roster(store):
                pass
        store.close()
        found = problems(sidecar.grpc_port)
    assert list(found) == ["encryption"]
    assert "'k1'" in found["encryption"]["text"]
    assert "the same keys" in found["encryption"]["remedy"]
