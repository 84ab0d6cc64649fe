"""A short list under one state key, which several processes change."""

import json
from collections.abc import Callable
from typing import Any

from dapr_runners.engine._io import IO


class Listed:
    """What is listed under the state key ``key``: runs, each with a name of something in it."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def all(self, io: IO) -> list[tuple[str, str]]:
        """What is listed, oldest first."""
        return [(run, at) for run, at in await listed(io, self._key)]

    async def add(self, io: IO, run: str, at: str) -> None:
        """List ``at`` of ``run``, unless it is."""
        await self._change(
            io, lambda listed: [*listed, [run, at]] if [run, at] not in listed else None
        )

    async def remove(self, io: IO, run: str, at: str) -> None:
        """Take it off the list."""
        await self._change(
            io,
            lambda listed: (
                [one for one in listed if one != [run, at]] if [run, at] in listed else None
            ),
        )

    async def _change(self, io: IO, change: Callable[[list[Any]], list[Any] | None]) -> None:
        await change_list(io, self._key, change)


async def listed(io: IO, key: str) -> list[Any]:
    """The JSON list under the state key ``key``."""
    data = await io.get(key)
    return [] if data is None else json.loads(data)


async def change_list(io: IO, key: str, change: Callable[[list[Any]], list[Any] | None]) -> None:
    """Change the JSON list under the state key ``key``, as if alone; None leaves it as it is."""
    while True:
        found = await io.read(key)
        changed = change([] if found is None else json.loads(found.value))
        if changed is None:
            return
        data = json.dumps(changed).encode()
        written = (
            await io.create(key, data) if found is None else await io.replace(key, data, found.etag)
        )
        if written:
            return
