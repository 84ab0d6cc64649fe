"""A reader gives out every record in causal order, however the store lets it see them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from dapr_runners.engine import Bus, Chunk, LiveChunk, Reader, Record
from dapr_runners.engine._keys import end_key, record_key
from dapr_runners.engine._turns import Progress

RUN = "run"


def plan(key: str, lane: str, n: int, *steps: str, loop: bool = False) -> Record:
    planned = [{"id": step, "name": step, "loop": loop} for step in steps]
    return record(key, {"k": "plan", "lane": lane, "n": n, "at": key, "steps": planned})


def step(key: str, lane: str, n: int, id: str) -> Record:
    return record(key, {"k": "step", "lane": lane, "n": n, "id": id, "at": key})


def record(key: str, outcome: dict[str, Any]) -> Record:
    return Record(key, outcome, {}, [key.encode()], [], "")


class NoInbox:
    """Nothing is told in this process."""

    def put(self, message: Any) -> None: ...

    async def take(self, timeout: float) -> Any:  # noqa: ASYNC109
        return None


class SlowStore:
    """Shows a record only from the look on whose number ``visible`` gives (0 without one)."""

    def __init__(self, records: Sequence[Record], visible: dict[str, int]) -> None:
        self.records = {record_key(RUN, record.key): record for record in records}
        self._visible = {record_key(RUN, key): look for key, look in visible.items()}
        self._look = 0

    async def get(self, key: str) -> bytes | None:
        ends = [each.key for each in self.records.values() if each.outcome["k"] == "end"]
        return ends[0].encode() if ends and key == end_key(RUN) else None

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        look, self._look = self._look, self._look + 1
        return {
            key: b"a record"
            for key in keys
            if key in self.records and self._visible.get(key, 0) <= look
        }

    def inbox(self) -> NoInbox:
        return NoInbox()


async def read(*records: Record, visible: dict[str, int] | None = None) -> list[str]:
    """Keys of the records in the order in which a reader gives them out."""
    store = SlowStore(records, visible or {})
    io: Any = store
    reader = Reader(RUN, Bus(), io, lambda _key, _data, at: store.records[at], lambda _: None)
    given = [event async for events in reader.events() for event in events]
    keys = [event.key for event in given if isinstance(event, Record)]
    chunks = [event.data.decode() for event in given if not isinstance(event, Record)]
    assert chunks == keys  # each record's chunk came, once, and in the same order
    return keys


END = record("1", {"k": "end", "at": "1"})


async def test_steps_come_before_what_follows_them() -> None:
    records = [plan("0", "", 0, "a", "b"), step("0:a", "", 0, "a"), step("0:b", "", 0, "b"), END]
    assert await read(*records) == ["0", "0:a", "0:b", "1"]


async def test_a_step_that_is_seen_after_what_follows_it() -> None:
    records = [plan("0", "", 0, "a", "b"), step("0:a", "", 0, "a"), step("0:b", "", 0, "b"), END]
    assert await read(*records, visible={"0:b": 2}) == ["0", "0:a", "0:b", "1"]


async def test_a_subgraph_that_is_seen_after_what_follows_it() -> None:
    """With all its records, and the steps in it before what follows them."""
    records = [
        plan("0", "", 0, "sub", loop=True),
        plan("0:sub/0", "0:sub/", 0, "a", "b"),
        step("0:sub/0:a", "0:sub/", 0, "a"),
        step("0:sub/0:b", "0:sub/", 0, "b"),
        step("0:sub/1", "", 0, "sub"),
        END,
    ]
    in_order = [record.key for record in records]
    for late in in_order[1:-1]:
        assert await read(*records, visible={late: 2}) == in_order


async def test_a_step_that_was_not_waited_for_is_not_waited_for() -> None:
    records = [plan("0", "", 0, "a", "b"), step("0:a", "", 0, "a"), END]
    assert await read(*records) == ["0", "0:a", "1"]


class ToldInbox:
    """Counts how often a reader is woken; :meth:`take` first runs what is planned for it."""

    def __init__(self) -> None:
        self.plans: list[Callable[[], None]] = []
        self.messages: list[Any] = []
        self.wakes = 0

    def put(self, message: Any) -> None:
        self.messages.append(message)

    async def take(self, timeout: float) -> Any:  # noqa: ASYNC109
        while self.plans and not self.messages:
            self.plans.pop(0)()
        if not self.messages:
            return None
        self.wakes += 1
        return self.messages.pop(0)


class ToldStore(SlowStore):
    """Where records are told of."""

    def __init__(self) -> None:
        super().__init__([], {})
        self.told = ToldInbox()
        self.looks = 0

    def write(self, record: Record) -> None:
        self.records[record_key(RUN, record.key)] = record

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        self.looks += 1
        return await super().get_many(keys)

    def inbox(self) -> Any:
        return self.told


async def read_end(store: ToldStore, bus: Bus, *, alone: bool = True) -> list[str]:
    """Keys of the records in the order in which one who wants only the end gets them."""

    async def is_alone() -> bool:
        return alone

    async def progress(_run: str) -> Progress:
        return Progress.ENDED if await store.get(end_key(RUN)) else Progress.ACTIVE

    io: Any = store

    def decode(_key: str, _data: bytes, at: str) -> Record:
        return store.records[at]

    reader = Reader(RUN, bus, io, decode, progress, end_only=is_alone)
    given = [event async for events in reader.events() for event in events]
    reader.close()
    keys = [event.key for event in given if isinstance(event, Record)]
    assert [event.data.decode() for event in given if isinstance(event, Chunk)] == keys
    return keys


def long_run(steps: int) -> list[Record]:
    records: list[Record] = []
    for n in range(steps):
        records += [plan(f"{n}", "", n, "a"), step(f"{n}:a", "", n, "a")]
    return [*records, record(f"{steps}", {"k": "end", "at": f"{steps}"})]


async def test_who_wants_only_the_end_is_woken_by_it() -> None:
    store, bus = ToldStore(), Bus()
    records = long_run(10)

    def happen() -> None:
        for each in records:
            store.write(each)
            bus.publish(RUN, LiveChunk(each.key, 0, each.key.encode()))
            bus.publish(RUN, each)

    store.told.plans.append(happen)
    assert await read_end(store, bus) == [each.key for each in records]
    assert store.told.wakes == 1
    assert store.looks == 1  # before it was told anything


async def test_what_led_to_the_end_and_was_not_told_is_looked_for() -> None:
    store, bus = ToldStore(), Bus()
    records = long_run(3)

    def happen() -> None:
        for each in records:
            store.write(each)
        for each in records[2:]:
            bus.publish(RUN, each)

    store.told.plans.append(happen)
    assert await read_end(store, bus) == [each.key for each in records]


async def test_of_a_long_run_not_all_is_held() -> None:
    store, bus = ToldStore(), Bus()
    records = long_run(100)
    held: list[int] = []

    def tell(each: Record) -> None:
        store.write(each)
        bus.publish(RUN, each)
        held.append(sum(map(len, store.told.messages)))

    store.told.plans += [partial(tell, each) for each in records]
    assert await read_end(store, bus) == [each.key for each in records]
    assert store.told.wakes == len(records) // 64 + 1
    assert max(held) == 64


@pytest.mark.parametrize("alone", [True, False])
async def test_an_end_that_nobody_tells_is_found(alone: bool) -> None:
    store, bus = ToldStore(), Bus()
    records = long_run(3)

    def happen() -> None:
        for each in records:
            store.write(each)

    store.told.plans.append(happen)
    assert await read_end(store, bus, alone=alone) == [each.key for each in records]
