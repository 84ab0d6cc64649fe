"""Who works alone knows it; who does not, never believes it for long."""

from typing import Any

import pytest

from dapr_runners.engine import _company
from dapr_runners.engine._company import Company
from dapr_runners.state import StateStoreError, StoredValue


class Store:
    """A state store in memory, sync and async."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[bytes, int]] = {}
        self.away = False

    def read(self, key: str) -> StoredValue | None:
        if self.away:
            raise StateStoreError(store="statestore", status="UNAVAILABLE", detail="away")
        found = self.values.get(key)
        return None if found is None else StoredValue(found[0], str(found[1]))

    def create(self, key: str, value: bytes) -> bool:
        return self.values.setdefault(key, (value, 1)) == (value, 1)

    def replace(self, key: str, value: bytes, etag: str) -> bool:
        if str(self.values[key][1]) != etag:
            return False
        self.values[key] = (value, int(etag) + 1)
        return True

    async def get(self, key: str) -> bytes | None:
        return self.values[key][0] if key in self.values else None


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_company, "time", clock)
    return clock


def company(monkeypatch: pytest.MonkeyPatch, host: str) -> Company:
    monkeypatch.setattr(_company, "process_identity", lambda: f"{host} 1 1")
    return Company("runner")


async def test_another_is_known_before_it_stops_being_new(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    store: Any = Store()
    one, other = company(monkeypatch, "one"), company(monkeypatch, "other")
    one.join(store)
    assert await one.is_alone(store)
    other.join(store)
    assert not await other.is_alone(store)
    clock.now += 0.8
    assert other.pause > 0
    assert not await one.is_alone(store)
    clock.now += 1
    assert other.pause == 0
    other.leave(store)
    clock.now += 10
    # It may have left steps that are recorded, and handed to nobody yet.
    assert not await one.is_alone(store)


async def test_one_that_died_on_this_host_is_not_another(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    store: Any = Store()
    company(monkeypatch, "one").join(store)
    monkeypatch.setattr(_company, "is_dead", lambda _identity: True)
    again = company(monkeypatch, "one")
    again.join(store)
    assert await again.is_alone(store)


async def test_who_cannot_say_that_it_works_takes_care(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    store: Any = Store()
    store.away = True
    one = company(monkeypatch, "one")
    one.join(store)
    clock.now += 60
    assert one.pause > 0
    assert not await one.is_alone(store)


@pytest.mark.parametrize(("age", "looks"), [(0.45, 1), (0.55, 2)])
async def test_one_looks_again_while_others_still_trust(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, age: float, looks: int
) -> None:
    one = company(monkeypatch, "one")

    class Slow(Store):
        looked = 0

        async def get(self, key: str) -> bytes | None:
            self.looked += 1
            if self.looked == 1:
                assert await one.is_alone(store)  # another thread, meanwhile
            return await super().get(key)

    slow = Slow()
    store: Any = slow
    one.join(store)
    clock.now += age
    assert await one.is_alone(store)
    assert slow.looked == looks
