"""What runs wait with for somebody's decision, or have failed of: one letter each, and a list."""

import json
from typing import Any

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import dead_letters_key, decisions_key, record_key
from dapr_runners.engine._listed import Listed, change_list
from dapr_runners.engine._work import Json

PARKED, FAILED, UNSENT = "parked/", "failed/", "unsent/"
"""How the names of letters begin: of runs that wait (the event that lets them go on has the same
name), of runs that have failed, and of messages that their receiver refused."""


class Letters:
    """The letters of all runners of a state store. A letter is named ``at`` in its run."""

    def __init__(self) -> None:
        self._listed = Listed(dead_letters_key())

    async def post(self, io: IO, run: str, at: str, letter: Json) -> None:
        """Write and list a letter."""
        await io.put_many({record_key(run, at): json.dumps(letter).encode()})
        await self._listed.add(io, run, at)

    async def get(self, io: IO, run: str, at: str) -> Json | None:
        """A letter, or None when there is none (any more)."""
        data = await io.get(record_key(run, at))
        return None if data is None else json.loads(data)

    async def change(self, io: IO, run: str, at: str, **changes: Any) -> None:
        """Add to a letter, if it is there."""
        key = record_key(run, at)
        while (found := await io.read(key)) is not None:
            letter = {**json.loads(found.value), **changes}
            if await io.replace(key, json.dumps(letter).encode(), found.etag):
                return

    async def remove(self, io: IO, run: str, at: str) -> None:
        """Take a letter off the list, and delete it."""
        await self._listed.remove(io, run, at)
        await io.delete_many([record_key(run, at)])

    async def decided(self, io: IO, run: str, at: str, decision: Json) -> None:
        """Keep what was decided on a letter for as long as its run is kept."""
        taken: Json = {"letter": f"{run}/{at}", **decision}
        await change_list(io, decisions_key(run), lambda before: [*before, taken])

    async def decisions(self, io: IO, run: str) -> list[Json]:
        """What was decided on the letters of ``run``, oldest first."""
        data = await io.get(decisions_key(run))
        return [] if data is None else json.loads(data)

    async def all(self, io: IO) -> list[tuple[str, str]]:
        """Runs and names of the letters, oldest first."""
        return await self._listed.all(io)

    async def remove_all(self, io: IO, run: str) -> None:
        """Remove the letters of a run that is over with for good."""
        for listed, at in await self.all(io):
            if listed == run:
                await self.remove(io, run, at)
