"""Messages that were recorded with a step: sent when the record is durable, in order.

Each is sent at least once. How far that has come is kept under a key of its own, so that whoever
adopts the record later (its worker died, its run was started again) sends what is left. A receiver
that is away is asked again for a moment here, and then by the workflow, whose timer holds no
thread. What a receiver refuses for good becomes a dead letter, and the run goes on.
"""

import base64
import logging
import time

from dapr_runners.engine._dead_letters import UNSENT, Letters
from dapr_runners.engine._delivery import Delivery, NotTaken, destination
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import sent_key
from dapr_runners.engine._work import Json, Record, Work
from dapr_runners.engine.errors import MessageUndeliveredError

logger = logging.getLogger("dapr_runners")

_PATIENCE = 2.0
"""Seconds for which a message is tried again before the activity gives up its thread."""


class Outbox:
    """Sends the messages of one runner's steps."""

    def __init__(self, runner: str, delivery: Delivery, letters: Letters) -> None:
        self._runner = runner
        self._delivery = delivery
        self._letters = letters

    async def send(self, work: Work, record: Record, io: IO, *, is_new: bool) -> None:
        """Send the messages of ``record``. With ``is_new``, nobody can have sent any before. Raises
        :class:`MessageUndeliveredError` while one is not taken."""
        at = sent_key(work.run, record.key)
        before = b"0" if is_new else await io.get(at) or b"0"
        number = first = int(before)
        try:
            for message in record.messages[first:]:
                try:
                    await self._insist(work, message, io)
                except NotTaken as refused:
                    await self._refused(work, record, number, refused.reason, io)
                number += 1
        finally:
            if number > first:
                await io.put_many({at: str(number).encode()})

    async def _insist(self, work: Work, message: Json, io: IO) -> None:
        give_up_at = time.monotonic() + _PATIENCE
        pause = 0.05
        while True:
            try:
                return await io.call(lambda: self._delivery.deliver(message))
            except NotTaken as fault:
                if fault.for_good:
                    raise
                if time.monotonic() + pause > give_up_at:
                    raise MessageUndeliveredError(
                        run_id=work.run,
                        step=work.step_name,
                        to=destination(message),
                        message_id=message["id"],
                        reason=fault.reason,
                    ) from fault
            await io.sleep(pause)
            pause = min(pause * 2, 1.0)

    async def _refused(self, work: Work, record: Record, number: int, reason: str, io: IO) -> None:
        message = record.messages[number]
        letter: Json = {
            "kind": "message",
            "runner": self._runner,
            "run_id": work.run,
            "time": time.time(),
            "step": work.step_name,
            "step_id": record.key.partition("~")[0],
            "attempts": 1,
            "error": f"{destination(message)}: {reason}",
            "message_id": message["id"],
            "destination": destination(message),
            "message": packed(message),
        }
        await self._letters.post(io, work.run, f"{UNSENT}{record.key}/{number}", letter)
        logger.error("run %s goes on, but its message was refused: %s", work.run, letter["error"])


def packed(message: Json) -> Json:
    """``message`` as JSON."""
    return {**message, "data": base64.b64encode(message["data"]).decode()}


def unpacked(message: Json) -> Json:
    """The message that :func:`packed` made JSON of."""
    return {**message, "data": base64.b64decode(message["data"])}
