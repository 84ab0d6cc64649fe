"""A reader gives out every record in causal order, however the store lets it see them."""

from collections.abc import Sequence
from typing import Any

from dapr_runners.engine import Bus, Reader, Record
from dapr_runners.engine._keys import end_key, record_key

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
