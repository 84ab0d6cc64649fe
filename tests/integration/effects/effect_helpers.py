"""What the tests of effects have in common."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dapr_runners._current_step import CurrentStep
from dapr_runners.state import StateStore

StepMaker = Callable[..., CurrentStep]


class CountingStore(StateStore):
    """Keeps the keys that each call has written, and counts reads."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.writes: list[tuple[str, ...]] = []
        self.reads = 0

    def create(self, key: str, value: bytes) -> bool:
        self.writes.append((key,))
        return super().create(key, value)

    def create_many(self, values: Mapping[str, bytes]) -> dict[str, bool]:
        self.writes.append(tuple(values))
        return super().create_many(values)

    async def acreate(self, key: str, value: bytes) -> bool:
        self.writes.append((key,))
        return await super().acreate(key, value)

    def replace(self, key: str, value: bytes, etag: str) -> bool:
        self.writes.append((key,))
        return super().replace(key, value, etag)

    async def areplace(self, key: str, value: bytes, etag: str) -> bool:
        self.writes.append((key,))
        return await super().areplace(key, value, etag)

    def put_many(self, values: Mapping[str, bytes]) -> None:
        self.writes.append(tuple(values))
        super().put_many(values)

    async def aput_many(self, values: Mapping[str, bytes]) -> None:
        self.writes.append(tuple(values))
        await super().aput_many(values)

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        self.reads += 1
        return super().get_many(keys)


class Charges:
    """Counts calls; ``fails`` are errors to raise in place of the first of them."""

    def __init__(self, *fails: BaseException) -> None:
        self.made: list[Any] = []
        self._fails = list(fails)

    def __call__(self, order: Any) -> str:
        self.made.append(order)
        if self._fails:
            raise self._fails.pop(0)
        return f"receipt {len(self.made)}"
