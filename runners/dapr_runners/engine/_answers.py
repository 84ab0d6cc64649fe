"""The steps of a run that wait for an answer, and what settles them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._attempts import process_identity
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import record_key
from dapr_runners.engine._telling import Telling
from dapr_runners.engine._turns import said
from dapr_runners.engine._watching import watching
from dapr_runners.engine._work import Json, Record
from dapr_runners.state import Codec


async def _nobody(_run: str, _record: Record, _io: IO, _is_new: bool) -> None:
    """Nobody in this process waits for a record."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Settles waiting steps of one runner. ``recorded`` is told of each answer that counts, and,
    where somebody watches, whether it is there for the first time."""

    codec: Codec
    telling: Telling
    client: Callable[[], DaprWorkflowClient]
    recorded: Callable[[str, Record, IO, bool], Awaitable[None]] = _nobody

    async def settle(self, io: IO, run: str, at: str, id: str, body: Json) -> bool:
        """Settle the step ``id`` of ``run`` that waits for an answer under the record key ``at``,
        with what ``body`` holds; whether this answer, and no other before it, counts."""
        outcome: Json = {
            "k": "step",
            "lane": "",
            "n": int(at.partition(":")[0]),
            "id": id,
            "at": at,
        }
        record = Record(at, outcome, body, [], [], process_identity())
        data = self.codec.encode_plain(record.pack(), f"the record {at}")
        await self.telling.untold.add(io, run, at)
        # The same answer again counts as well: it is created once more.
        is_new = watching().watcher is None or await io.get(record_key(run, at)) is None
        ours = await io.create(record_key(run, at), data)
        if ours:
            await self.recorded(run, record, io, is_new)
        # Again, if it was there: who answered first may have died before this.
        await self.telling.answered(io, run, at)
        return ours

    async def open_in(self, io: IO, run: str) -> list[str]:
        """Record keys of the steps that ``run`` waits with for an answer, oldest first."""
        state = await io.call(lambda: self.client().get_workflow_state(run))
        status = said(None if state is None else state.serialized_custom_status)
        return [] if status is None else status.get("asks", [])
