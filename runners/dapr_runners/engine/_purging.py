"""Deletes all that is recorded for a run that has ended.

What tells of the rest goes last, and the workflow after it: who is killed in between leaves a run
that is still listed, and can be purged again.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._bus import Bus
from dapr_runners.engine._dead_letters import FAILED, PARKED, UNSENT, Letters
from dapr_runners.engine._effect_keys import effect_keys
from dapr_runners.engine._ending import ENDING_SECONDS, at_rest, settled
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import (
    BROKEN,
    artifact_prefix,
    attempts_key,
    decisions_key,
    end_key,
    record_key,
    sent_key,
    spec_key,
)
from dapr_runners.engine._reader import Reader
from dapr_runners.engine._telling import OVER, Telling
from dapr_runners.engine._turns import Turns, unpack_spec
from dapr_runners.engine._untold import PURGE
from dapr_runners.engine._work import Record, unpack_record
from dapr_runners.engine.errors import RunNotEndedError, RunNotFoundError
from dapr_runners.state import Artifacts, Codec, CorruptRecordError, StateStore

logger = logging.getLogger("dapr_runners")


@dataclass(frozen=True, slots=True)
class Purge:
    """Purges runs of one runner. ``forget`` drops what this process holds for one."""

    client: Callable[[], DaprWorkflowClient]
    codec: Codec
    store: StateStore
    telling: Telling
    turns: Turns
    forget: Callable[[str], None]

    async def run(self, io: IO, run: str, *, has_ended: bool = False) -> None:
        """Purge ``run``. Raises :class:`RunNotEndedError` while it is active; ``has_ended`` says
        that its workflow was seen to have ended."""
        has_workflow = has_ended or await self._has_ended(io, run)
        found = await io.get_many([spec_key(run), end_key(run)])
        spec = found.get(spec_key(run))
        if not has_workflow and spec is None:
            raise RunNotFoundError(run_id=run)
        self.forget(run)
        if not await self._ended_well(io, run, found.get(end_key(run))):
            await at_rest(io)
        await Letters().remove_all(io, run)
        thread = None if spec is None else self._thread_in(spec, run)
        if thread is not None:
            await self.turns.purged(io, thread, run)
        keys = [key async for key in self._keys_of(io, run)]
        await io.delete_many([*await io.parts_of(keys), *keys])
        if has_workflow:
            client = self.client()
            if not await self.telling.soon(io, run, lambda: client.purge_workflow(run)):
                await self.telling.untold.add(io, run, PURGE)

    async def _ended_well(self, io: IO, run: str, at: bytes | None) -> bool:
        try:
            end = await end_at(io, run, at, self._decode)
        except CorruptRecordError:
            return False
        return end is not None and end.outcome["status"] != "failed"

    def _thread_in(self, spec: bytes, run: str) -> str | None:
        """The thread of a run that is to be purged: a damaged one, too."""
        try:
            return unpack_spec(self.codec, spec, run).get("thread")
        except CorruptRecordError as error:
            logger.warning("purging %s all the same: %s", run, error)
            return None

    async def _has_ended(self, io: IO, run: str) -> bool:
        """Wait for the workflow of ``run``, which is about to end; whether there is one."""
        client = self.client()
        state = await settled(io, client, run, ENDING_SECONDS)
        if state is None or state.runtime_status.name in OVER:
            return state is not None
        if await io.get(end_key(run)) is not None:
            # Raises when it cannot end because there is no worker.
            await io.call(lambda: client.terminate_workflow(run))
        raise RunNotEndedError(run_id=run)

    async def _keys_of(self, io: IO, run: str) -> AsyncIterator[str]:
        """State keys of ``run``, in the order in which they are to be deleted: the records say what
        can follow them."""
        names: set[str] = set()
        steps: set[str] = set()
        reader = Reader(run, Bus(), io, self._decode, lambda _: None)
        async for record in reader.recorded():
            for call in record.body.get("calls", ()):
                yield record_key(run, call)
            steps.update(steps_told(record))
            names.update(record.body.get("artifacts", ()))
            if record.messages:
                yield sent_key(run, record.key)
                for number in range(len(record.messages)):
                    yield record_key(run, f"{UNSENT}{record.key}/{number}")
        artifacts = Artifacts(self.store, artifact_prefix(run))
        for key in await io.call(lambda: artifacts.keys_of(names)):
            yield key
        async for key in effect_keys(io, run, steps):
            yield key
        async for live in reader.live_batches():
            yield record_key(run, live)
        for key in reversed(reader.keys):
            # Letters, too: they may be off the list already.
            yield record_key(run, f"{PARKED}{key}")
            yield record_key(run, f"{FAILED}{key}")
            yield attempts_key(run, key)
            yield record_key(run, key)
        yield record_key(run, BROKEN)
        yield decisions_key(run)
        yield end_key(run)
        yield spec_key(run)

    def _decode(self, key: str, data: bytes, stored_under: str) -> Record:
        return unpack_record(self.codec, key, data, stored_under)


def steps_told(record: Record) -> Iterable[str]:
    """Keys of the steps that a plan or an end tells of: their effects are recorded under them."""
    outcome, body = record.outcome, record.body
    for step in outcome["steps"] if outcome["k"] == "plan" else ():
        yield f"{outcome['lane']}{outcome['n']}:{step['id']}"
    if outcome["k"] in ("plan", "end"):
        for told in (*body.get("told", ()), *body.get("known", ())):
            yield told["key"]


async def end_of(io: IO, run: str, decode: Callable[[str, bytes, str], Record]) -> Record | None:
    """The record of the end of ``run``, if it has ended with one."""
    return await end_at(io, run, await io.get(end_key(run)), decode)


async def end_at(
    io: IO, run: str, at: bytes | None, decode: Callable[[str, bytes, str], Record]
) -> Record | None:
    """The same, where it is known what is stored under the key of the end."""
    if at is None:
        return None
    key = at.decode()
    data = await io.get(record_key(run, key))
    return None if data is None else decode(key, data, record_key(run, key))
