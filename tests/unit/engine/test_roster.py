"""Who works, as each process says it."""

import json
import logging
import threading
from typing import Any

import pytest

from dapr_runners.engine import _roster, roster
from dapr_runners.engine._roster import GONE_AFTER, Roster
from dapr_runners.state import StateStoreError, StoredValue


class Store:
    """A state store in memory."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[bytes, int]] = {}
        self.away = False
        self.lost_races = 0

    def read(self, key: str) -> StoredValue | None:
        if self.away:
            raise StateStoreError(store="statestore", status="UNAVAILABLE", detail="away")
        found = self.values.get(key)
        return None if found is None else StoredValue(found[0], str(found[1]))

    def get(self, key: str) -> bytes | None:
        found = self.read(key)
        return found and found.value

    def create(self, key: str, value: bytes) -> bool:
        return self.values.setdefault(key, (value, 1)) == (value, 1)

    def replace(self, key: str, value: bytes, etag: str) -> bool:
        if self.lost_races:
            self.lost_races -= 1
            return False
        self.values[key] = (value, int(etag) + 1)
        return True


@pytest.fixture
def store() -> Any:
    return Store()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(_roster, "time", lambda: now[0])
    return now


def member(store: Any, monkeypatch: pytest.MonkeyPatch, host: str, *runners: str) -> Roster:
    monkeypatch.setattr(_roster, "process_identity", lambda: f"{host} 1 1")
    return Roster(store, lambda: runners)


def listed(store: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.shown, each.runners) for each in roster(store)]


def test_they_come_and_go(store: Any, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    one = member(store, monkeypatch, "one", "b", "a")
    one._say(works=True)
    other = member(store, monkeypatch, "other", "a")
    store.lost_races = 3
    other._say(works=True)
    assert listed(store) == [("process 1 on one", ("a", "b")), ("process 1 on other", ("a",))]
    one._say(works=False)
    assert listed(store) == [("process 1 on other", ("a",))]


def test_who_is_not_heard_of_is_gone(
    store: Any, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    member(store, monkeypatch, "one", "a")._say(works=True)
    clock[0] += GONE_AFTER - 1
    member(store, monkeypatch, "other", "a")._say(works=True)
    assert len(listed(store)) == 2
    clock[0] += 2
    assert listed(store) == [("process 1 on other", ("a",))]
    member(store, monkeypatch, "third", "a")._say(works=True)
    assert len(json.loads(store.get("dr/processes"))) == 2


def test_other_runners_are_warned_of_once(
    store: Any,
    monkeypatch: pytest.MonkeyPatch,
    clock: list[float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    member(store, monkeypatch, "one", "a", "b")._say(works=True)
    other = member(store, monkeypatch, "other", "b")
    for _ in range(3):
        other._say(works=True)
    assert caplog.record_tuples == [
        (
            "dapr_runners",
            logging.WARNING,
            "process 1 on one works for the same app id with other runners (a, b; here: b). Each"
            " gets work of the other's, and what it does not know fails. Give the programs app ids"
            " of their own, or the same runners.",
        )
    ]


def test_a_store_that_is_away_is_no_matter(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = member(store, monkeypatch, "one", "a")
    store.away = True
    one._say(works=True)
    store.away = False
    one._say(works=True)
    assert len(listed(store)) == 1


def test_who_leaves_while_it_says_that_it_works_is_gone(store: Any) -> None:
    """The store is so slow that whoever leaves does not wait for it."""
    reads, go_on = threading.Event(), threading.Event()
    read = store.read

    def slow_first_read(key: str) -> StoredValue | None:
        if threading.current_thread() is not threading.main_thread():
            reads.set()
            assert go_on.wait(60)
        return read(key)

    store.read = slow_first_read
    one = Roster(store, lambda: ["a"])
    one.join()
    assert reads.wait(60)
    thread = one._rounds._thread
    assert thread is not None
    one.leave()
    go_on.set()
    thread.join(60)
    assert not thread.is_alive()
    assert roster(store) == []
