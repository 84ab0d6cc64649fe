"""Worker streams: who gets which work item, and what happens to it when a worker is lost.

daprd's rules: any number of items may be out at once; an item goes to one stream, is out until
its answer comes or its stream ends, and is then given to another one.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from dapr_runners.sidecar._protos import pb


class Stream:
    """One worker's stream of work items."""

    def __init__(self, keeps_history: bool) -> None:
        self.keeps_history = keeps_history
        self.cached: dict[str, tuple[str, int]] = {}
        """By instance: the execution and how many of its events the worker holds."""
        self.out: dict[Hashable, Work] = {}
        self._items: deque[pb.WorkItem] = deque()
        self._more = asyncio.Event()

    def send(self, item: pb.WorkItem) -> None:
        """Queue an item."""
        self._items.append(item)
        self._more.set()

    async def next(self) -> pb.WorkItem:
        """The next item for the worker."""
        while not self._items:
            self._more.clear()
            await self._more.wait()
        return self._items.popleft()


@dataclass(slots=True, eq=False)
class Work:
    """A work item to be given out. ``build`` makes it for the stream that gets it.

    ``prefer`` is the instance whose cached history makes a stream the better choice; ``limit`` is
    the name under which a concurrency limit counts it.
    """

    key: Hashable
    build: Callable[[Stream], pb.WorkItem]
    prefer: str | None = None
    limit: str = ""
    stream: Stream | None = field(default=None)


class Dispatcher:
    """Gives work to the streams. ``limits`` maps what :attr:`Work.limit` names to how many."""

    def __init__(self, limits: dict[str, int] | None = None) -> None:
        self._limits = limits or {}
        self._streams: list[Stream] = []
        self._work: dict[Hashable, Work] = {}
        self._waiting: dict[Hashable, Work] = {}
        self._running: dict[str, int] = {}
        self._turn = 0

    @property
    def workers(self) -> int:
        """How many streams there are."""
        return len(self._streams)

    def is_out(self, key: Hashable) -> bool:
        """Whether a worker has an item."""
        work = self._work.get(key)
        return work is not None and work.stream is not None

    def open(self, keeps_history: bool) -> Stream:
        """A worker connected."""
        stream = Stream(keeps_history)
        self._streams.append(stream)
        self._give_waiting()
        return stream

    def close(self, stream: Stream) -> None:
        """A worker is lost: what it had goes to the others, first come first served."""
        self._streams.remove(stream)
        lost = list(stream.out.values())
        stream.out.clear()
        again: dict[Hashable, Work] = {}
        for work in lost:
            self._count(work, -1)
            work.stream = None
            again[work.key] = work
        self._waiting = again | self._waiting
        self._give_waiting()

    def submit(self, work: Work) -> None:
        """Give out an item now, or as soon as there is a worker and room for it."""
        self._work[work.key] = work
        if not self._give(work):
            self._waiting[work.key] = work

    def finish(self, key: Hashable) -> Stream | None:
        """An item has its answer, or nobody wants it any more. Returns who worked on it."""
        work = self._work.pop(key, None)
        if work is None:
            return None
        self._waiting.pop(key, None)
        stream = work.stream
        if stream is not None:
            stream.out.pop(key, None)
            work.stream = None
            self._count(work, -1)
            if self._waiting:
                self._give_waiting()
        return stream

    def _give_waiting(self) -> None:
        if self._streams:
            for work in list(self._waiting.values()):
                if self._give(work):
                    del self._waiting[work.key]

    def _give(self, work: Work) -> bool:
        if not self._streams or not self._has_room(work):
            return False
        stream = self._choose(work)
        work.stream = stream
        stream.out[work.key] = work
        self._count(work, 1)
        stream.send(work.build(stream))
        return True

    def _choose(self, work: Work) -> Stream:
        if work.prefer is not None:
            for stream in self._streams:
                if work.prefer in stream.cached:
                    return stream
        # Rotating the order before looking for the least busy makes equals take turns.
        self._turn = (self._turn + 1) % len(self._streams)
        candidates = self._streams[self._turn :] + self._streams[: self._turn]
        return min(candidates, key=lambda stream: len(stream.out))

    def _has_room(self, work: Work) -> bool:
        return all(
            self._running.get(name, 0) < self._limits[name] for name in self._limited_by(work)
        )

    def _count(self, work: Work, change: int) -> None:
        for name in self._limited_by(work):
            self._running[name] = self._running.get(name, 0) + change

    def _limited_by(self, work: Work) -> list[str]:
        if not self._limits:
            return []
        kind = work.limit.partition("/")[0]
        return [name for name in {kind, work.limit} if name in self._limits]
