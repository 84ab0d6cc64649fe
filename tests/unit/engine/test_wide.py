"""Values over what a sidecar takes in one call, over a store that a test can look into."""

from collections.abc import Mapping, Sequence

import pytest

from dapr_runners.engine._wide import Wide
from dapr_runners.state import CorruptRecordError, StoredValue

PART = 1 << 20
LARGE = bytes(range(256)) * 10_000


class Shelf(Wide):
    """A store of a few lines."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, StoredValue] = {}
        self.calls: list[int] = []

    async def _read(self, key: str) -> StoredValue | None:
        return self.rows.get(key)

    async def _get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        return {key: self.rows[key].value for key in keys if key in self.rows}

    async def _create(self, key: str, value: bytes) -> bool:
        if key in self.rows:
            return False
        await self.put_many({key: value})
        return True

    async def _replace(self, key: str, value: bytes, etag: str) -> bool:
        if key not in self.rows or self.rows[key].etag != etag:
            return False
        await self.put_many({key: value})
        return True

    async def put_many(self, values: Mapping[str, bytes]) -> None:
        self.calls.append(sum(map(len, values.values())))
        for key, value in values.items():
            before = self.rows.get(key)
            self.rows[key] = StoredValue(value, str(int(before.etag) + 1 if before else 1))

    async def delete_many(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.rows.pop(key, None)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.mark.parametrize("size", [1, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 1, 9 * PART])
async def test_a_value_comes_back(shelf: Shelf, size: int) -> None:
    value = (LARGE * (size // len(LARGE) + 1))[:size]
    assert await shelf.create("key", value)
    assert await shelf.get("key") == value
    assert await shelf.get_many(["key", "other"]) == {"key": value}
    assert max(shelf.calls) <= 3 * PART


async def test_a_small_value_is_one_row(shelf: Shelf) -> None:
    await shelf.create("key", b"small")
    assert list(shelf.rows) == ["key"]
    assert await shelf.parts_of(["key"]) == []


async def test_the_parts_are_known(shelf: Shelf) -> None:
    await shelf.create("key", LARGE)
    assert {"key", *await shelf.parts_of(["key", "other"])} == set(shelf.rows)


@pytest.mark.parametrize("second", [b"small", LARGE, LARGE + b"!"])
async def test_the_first_writer_wins_and_the_second_leaves_nothing(
    shelf: Shelf, second: bytes
) -> None:
    await shelf.create("key", LARGE)
    rows = dict(shelf.rows)
    assert not await shelf.create("key", second)
    assert shelf.rows == rows
    assert await shelf.get("key") == LARGE


@pytest.mark.parametrize("value", [b"small", LARGE + b"!"])
async def test_replacing_leaves_nothing_of_what_was(shelf: Shelf, value: bytes) -> None:
    await shelf.create("key", LARGE)
    found = await shelf.read("key")
    assert found is not None and found.value == LARGE
    assert await shelf.replace("key", value, found.etag)
    assert await shelf.get("key") == value
    assert {"key", *await shelf.parts_of(["key"])} == set(shelf.rows)


async def test_a_replacement_that_comes_too_late_leaves_nothing(shelf: Shelf) -> None:
    await shelf.create("key", LARGE)
    rows = dict(shelf.rows)
    assert not await shelf.replace("key", LARGE + b"!", "0")
    assert shelf.rows == rows


async def test_a_value_that_is_replaced_while_it_is_read(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shelf.create("key", LARGE)
    get_many = shelf._get_many

    async def replaced_first(keys: Sequence[str]) -> dict[str, bytes]:
        monkeypatch.setattr(shelf, "_get_many", get_many)
        await shelf.delete_many(keys)
        await shelf.put_many({"key": b"newer"})
        return await get_many(keys)

    monkeypatch.setattr(shelf, "_get_many", replaced_first)
    found = await shelf.read("key")
    assert found is not None and found.value == b"newer"


async def test_a_part_that_is_gone(shelf: Shelf) -> None:
    await shelf.create("key", LARGE)
    await shelf.delete_many((await shelf.parts_of(["key"]))[:1])
    for read in (shelf.get, shelf.read):
        with pytest.raises(CorruptRecordError, match=r"'key'.*a part of it is gone"):
            await read("key")
