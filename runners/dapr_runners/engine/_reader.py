"""The event log of a run, as a caller reads it: every recorded chunk once, in causal order.

There is no separate log: the records are the log. A plan says which records can come next, so the
reader knows which keys to ask for. Where worker and caller share a process the bus brings records
and live chunks at once; polling, at short and growing intervals, finds what other processes wrote.
"""

import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from dapr_runners.engine._bus import Bus, Cancelled, LiveChunk, Message
from dapr_runners.engine._held import Held, tells_end
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import BROKEN, CANCELLED, end_key, record_key
from dapr_runners.engine._live_log import live_key, live_topic, read_batch, read_message
from dapr_runners.engine._pubsub import PubSub
from dapr_runners.engine._turns import Progress
from dapr_runners.engine._work import Json, Record
from dapr_runners.state import Codec, CorruptRecordError

logger = logging.getLogger("dapr_runners")

_FIRST_POLL, _LAST_POLL = 0.005, 1.0
_LIVE_POLL = 0.1
_LOCAL_POLL = 0.05
_STATUS_EVERY = 0.5
"""Seconds between looks at the workflow itself, which may have failed without a recorded end."""
_QUIET_GROWTH = 1.1
"""Of the pauses of who waits for an end that another process records: it learns of it late by a
tenth of the time it has waited, or a second."""
_CROWD = 50
"""Runs that callers wait for in one process, from which on each of these looks more rarely."""

IsAlone: TypeAlias = Callable[[], Awaitable[bool]]
"""Tells whether all that happens in a run happens in this process."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One stream chunk; ``id`` is stable over reconnects: ``<run>/<record>.<number>``."""

    id: str
    data: bytes
    is_last: bool = False
    """Whether nothing but the record of the end follows."""


Event: TypeAlias = Chunk | Record
Log: TypeAlias = Callable[[Callable[[], None]], AsyncIterator[Event]]
"""Reads the log of a run, and calls what it is given after what was recorded before."""


class Reader:
    """Reads the log of ``run`` from its beginning. ``end_only``: nothing before the end is urgent,
    and polls are rarer."""

    def __init__(
        self,
        run: str,
        bus: Bus,
        io: IO,
        decode: Callable[[str, bytes, str], Record],
        progress: Callable[[str], Any],
        caught_up: Callable[[], None] = lambda: None,
        codec: Codec | None = None,
        pubsub: PubSub | None = None,
        works_here: bool = False,
        end_only: IsAlone | None = None,
    ) -> None:
        self._run = run
        self._bus = bus
        self._io = io
        self._decode = decode
        self._progress = progress
        self._caught_up = caught_up
        self._batches: dict[str, int] = {}  # record key -> batches of live chunks read
        self._inbox = io.inbox()
        self._end_only = end_only
        self._held = Held(self._inbox.put)
        put = self._inbox.put if end_only is None else self._held.put
        self._unsubscribe = [bus.subscribe(run, put)]
        self._codec = codec  # given when the run has live chunks to look for
        if codec is not None and pubsub is not None:
            self._unsubscribe.append(pubsub.subscribe(live_topic(run), self._published(codec)))
        self._expected: dict[str, list[bytes]] = {"0": []}  # record key -> chunks given out live
        self._early: dict[str, Record] = {}
        # What this process does it tells; it asks for what others did, and not at once.
        self._first_poll = _LOCAL_POLL / 2 if works_here else _FIRST_POLL
        self._pause = self._first_poll
        self._since_status = 0.0
        self.end: Record | None = None
        self.broken = False

    def close(self) -> None:
        """Stop listening."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._unsubscribe.clear()

    def _published(self, codec: Codec) -> Callable[[bytes], None]:
        def listener(data: bytes) -> None:
            for chunk in read_message(codec, data):
                self._inbox.put(chunk)

        return listener

    async def events(self, follow: bool = True) -> AsyncIterator[list[Event]]:
        """Chunks as they come, and each record after its chunks, as many at once as there are.
        Ends with the record of the end, or without one when the workflow broke (see
        :attr:`broken`). Without ``follow``, those there are right now."""
        async for events in self._catch_up():
            yield events
        self._caught_up()
        if follow and self._end_only is not None:
            async for events in self._held_back(self._end_only):
                yield events
            async for events in self._catch_up():
                yield events
        while follow and self.end is None and not self.broken:
            message = await self._inbox.take(self._pause)
            events = await (self._poll() if message is None else self._told(message))
            if events:
                yield events

    async def _catch_up(self) -> AsyncIterator[list[Event]]:
        while self.end is None and (found := await self._fetch(list(self._expected))):
            yield await self._accept(found)

    async def _held_back(self, is_alone: IsAlone) -> AsyncIterator[list[Event]]:
        """The events that are told until the end is, or is found to be there: in heaps."""
        if await is_alone():
            self._pause = _STATUS_EVERY * self._crowd
        is_over = False
        while self.end is None and not self.broken and not is_over:
            messages: list[Message] | None = await self._inbox.take(self._pause)
            if messages is None:
                if not await self._is_over(is_alone):
                    continue
                is_over, messages = True, self._held.take()
            events: list[Event] = []
            for message in messages:
                if self.end is None and not self.broken:
                    events += await self._told(message)
                    is_over = is_over or tells_end(message)
            yield events
        # If the end is still not here, what led to it was not told, or it broke: look at once.
        self._pause, self._since_status = 0.0, _STATUS_EVERY

    async def _is_over(self, is_alone: IsAlone) -> bool:
        """Whether the run has ended, in whatever way. Told nothing for :attr:`_pause`."""
        alone = await is_alone()
        if alone and self._held.has_grown():
            return False
        self._since_status += self._pause
        is_due = self._since_status >= _STATUS_EVERY
        if alone:
            self._pause = min(self._pause * 1.5, _LAST_POLL * self._crowd)
        else:
            self._pause = min(self._pause * _QUIET_GROWTH, _LAST_POLL)
        if is_due:
            self._since_status = 0.0
            return await self._progress(self._run) in (Progress.BROKEN, Progress.ENDED)
        return not alone and await self._io.get(end_key(self._run)) is not None

    @property
    def _crowd(self) -> float:
        return max(1.0, self._bus.runs / _CROWD)

    async def recorded(self) -> AsyncIterator[Record]:
        """The records there are right now, in any order: also those of steps that the run went on
        without. :attr:`keys` has the keys of those there are not, or that are damaged, too."""
        self.close()
        seen: set[str] = set()
        while wanted := [key for key in self._expected if key not in seen]:
            seen.update(wanted)
            for key, data in (await self._data(wanted)).items():
                try:
                    record = self._decode(key, data, record_key(self._run, key))
                except CorruptRecordError as error:
                    logger.warning("what follows it is not found: %s", error)
                    continue
                self._expect_after(record)
                yield record

    @property
    def keys(self) -> list[str]:
        """Keys of the records that are expected."""
        return list(self._expected)

    async def live_batches(self) -> AsyncIterator[str]:
        """Record keys of the live chunks there are."""
        keys = self.keys
        for number in itertools.count():
            named = {live_key(key, number): key for key in keys}
            found = await self._data(list(named))
            if not found:
                return
            for live in found:
                yield live
            keys = [named[live] for live in found]

    async def _told(self, message: Message) -> list[Event]:
        """Something happened in this process: no need to ask the store soon."""
        if isinstance(message, Cancelled):
            self.broken = True
            return []
        self._pause = max(self._pause, _LOCAL_POLL)
        if isinstance(message, LiveChunk):
            return [*self._live(message.key, [(message.seq, message.data)])]
        if message.key == BROKEN:
            self.broken, self.end = True, message
            return [message]
        return await self._accept({message.key: message})

    async def _poll(self) -> list[Event]:
        events: list[Event] = [*await self._fetch_live()]
        found = await self._fetch(list(self._expected))
        if found or events:
            self._pause, self._since_status = self._first_poll, 0.0
            return [*events, *await self._accept(found)]
        self._since_status += self._pause
        self._pause = min(self._pause * 1.5, _LAST_POLL if self._codec is None else _LIVE_POLL)
        if self._since_status < _STATUS_EVERY:
            return []
        self._since_status = 0.0
        if await self._progress(self._run) not in (Progress.BROKEN, Progress.ENDED):
            return []
        # What was recorded between the poll and the look counts.
        last = await self._fetch(list(self._expected))
        events = await self._accept(last)
        if not last and self.end is None:
            events += await self._broken_off()
        return events

    async def _broken_off(self) -> list[Event]:
        """The end of a run that is over, and that nothing in it led to expect."""
        self.broken = True
        at = await self._io.get(end_key(self._run))
        if at is None or at == CANCELLED:
            return []
        key = at.decode(errors="replace")
        self.end = (await self._stored([key])).get(key)
        if self.end is None:
            raise CorruptRecordError(key=end_key(self._run), reason="it names no record")
        return [self.end]

    async def _fetch_live(self) -> list[Chunk]:
        """Live chunks that other processes wrote since."""
        if self._codec is None:
            return []
        asked = {
            record_key(self._run, live_key(key, self._batches.get(key, 0))): key
            for key in self._expected
        }
        chunks: list[Chunk] = []
        for at, data in (await self._io.get_many(list(asked))).items():
            key = asked[at]
            self._batches[key] = self._batches.get(key, 0) + 1
            chunks.extend(self._live(key, read_batch(self._codec, at, data)))
        return chunks

    def _live(self, key: str, numbered: list[tuple[int, bytes]]) -> list[Chunk]:
        """Those of some chunks of a record to come that are next in its order."""
        chunks: list[Chunk] = []
        for seq, data in numbered:
            given = self._expected.get(key)
            if given is not None and len(given) == seq:
                given.append(data)
                chunks.append(Chunk(f"{self._run}/{key}.{seq}", data))
        return chunks

    async def _stored(self, keys: list[str]) -> dict[str, Record]:
        found = await self._data(keys)
        return {
            key: self._decode(key, data, record_key(self._run, key)) for key, data in found.items()
        }

    async def _data(self, keys: list[str]) -> dict[str, bytes]:
        stored = {record_key(self._run, key): key for key in keys}
        found = await self._io.get_many(list(stored))
        return {stored[at]: data for at, data in found.items()}

    async def _fetch(self, keys: list[str]) -> dict[str, Record]:
        records = await self._stored(keys)
        ends = [key for key, record in records.items() if record.outcome["k"] == "end"]
        if ends:
            # The run has ended once all it did has happened: checkpoints are still being sent. And
            # it has ended another way when that failed.
            end = await self._io.get(end_key(self._run))
            for key in ends:
                if end != key.encode():
                    del records[key]
        return records

    async def _accept(self, records: dict[str, Record]) -> list[Event]:
        """Give out what can be given out in order, now that ``records`` are known."""
        self._early.update(records)
        events: list[Event] = []
        ready = [key for key in self._early if key in self._expected]
        while ready and self.end is None:
            key = ready.pop(0)
            record = self._early.pop(key, None)
            if record is None:
                continue  # given out as a step before another
            events += await self._steps_before(record)
            events += self._give_out(record)
            if self._early:
                ready += [key for key in self._early if key in self._expected and key not in ready]
        return events

    async def _steps_before(self, record: Record) -> list[Event]:
        """The steps of a superstep come before what follows it, whichever was found first, with all
        that is inside them. What is not there was not waited for."""
        lane, n = _place(record.key)
        events: list[Event] = []
        if n is None:
            return events
        inside = f"{lane}{n - 1}:"
        past = record.outcome.get("past")  # of a rolling lane: others are still open
        before = None if past is None else {key.partition("~")[0] for key in past}
        while steps := [
            key
            for key in self._expected
            if (key.startswith(inside) if before is None else key.partition("~")[0] in before)
        ]:
            found = {key: self._early.pop(key) for key in steps if key in self._early}
            missing = [key for key in steps if key not in found]
            if missing:
                found.update(await self._fetch(missing))
            for key in steps:
                if key in found and key in self._expected:
                    events += await self._steps_before(found[key])
                    events += self._give_out(found[key])
                self._expected.pop(key, None)
        return events

    def _give_out(self, record: Record) -> list[Event]:
        given = _as_given(self._expected.pop(record.key, []), record.chunks)
        last = len(record.chunks) - 1 if record.outcome["k"] == "end" else -1
        events: list[Event] = [
            Chunk(f"{self._run}/{record.key}.{number}", data, number == last)
            for number, data in enumerate(record.chunks)
            if number >= given
        ]
        self._expect_after(record)
        if record.outcome["k"] == "end":
            self.end = record
        events.append(record)
        return events

    def _expect_after(self, record: Record) -> None:
        outcome = record.outcome
        if outcome["k"] == "plan":
            lane, n, steps = outcome["lane"], outcome["n"], outcome["steps"]
            if not (len(steps) == 1 and steps[0].get("fuse")):
                self._expect_steps(lane, n, steps)
            self._expected.setdefault(f"{lane}{n + 1}", [])
        elif outcome["k"] == "step":
            self._expect_steps(outcome["lane"], outcome["n"], outcome.get("more") or [])
        elif outcome["k"] == "retry":
            base = record.key.partition("~")[0]
            self._expected.setdefault(f"{base}~{outcome['attempt']}", [])

    def _expect_steps(self, lane: str, n: int, steps: list[Json]) -> None:
        for step in steps:
            key = f"{lane}{n}:{step['id']}"
            self._expected.setdefault(f"{key}/0" if step.get("loop") else key, [])


def _as_given(given: list[bytes], recorded: list[bytes]) -> int:
    """How many of the ``recorded`` chunks were given out. A step whose worker died is done again,
    and need not say the same: from where it differs, all is new."""
    for number, (old, new) in enumerate(zip(given, recorded, strict=False)):
        if old != new:
            return number
    return min(len(given), len(recorded))


def _place(key: str) -> tuple[str, int | None]:
    """The lane and number of a loop's record; no number for the record of a step."""
    head, slash, last = key.partition("~")[0].rpartition("/")
    return head + slash, None if ":" in last else int(last)
