"""The live loops a worker keeps parked, so that the next step need not thaw one."""

import asyncio
import threading
from collections import OrderedDict

from dapr_runners.langgraph._live import Live


class Lives:
    """Parked loops by run and lane: at most ``limit``, the least recently used go first."""

    def __init__(self, limit: int = 256) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._lives: OrderedDict[tuple[str, str], Live] = OrderedDict()

    def peek(self, run: str, lane: str, n: int) -> Live | None:
        """The loop of ``lane`` if it is parked at plan ``n``."""
        live = self._lives.get((run, lane))
        return live if live is not None and live.n == n else None

    def share(self, run: str, lane: str, n: int, task: str) -> Live | None:
        """The loop at plan ``n``, to run ``task`` on beside others; give it back with
        :meth:`unshare`. None when it is not here, or has run the task before."""
        with self._lock:
            live = self.peek(run, lane, n)
            if live is None or task in live.started:
                return None
            live.started.add(task)
            live.users += 1
            self._lives.move_to_end((run, lane))
            return live

    def unshare(self, live: Live) -> None:
        """End of :meth:`share`."""
        with self._lock:
            live.users -= 1

    def take(self, run: str, lane: str, n: int) -> Live | None:
        """The loop at plan ``n``, for its taker alone."""
        with self._lock:
            live = self.peek(run, lane, n)
            if live is not None:
                del self._lives[run, lane]
            return live

    def keep(self, run: str, lane: str, live: Live) -> None:
        """Park ``live`` for whoever works on its plan next."""
        with self._lock:
            old = self._lives.pop((run, lane), None)
            self._lives[run, lane] = live
            gone = [old] if old is not None and old is not live else []
            while len(self._lives) > self._limit:
                key = next((k for k, v in self._lives.items() if v.users == 0), None)
                if key is None:
                    break
                gone.append(self._lives.pop(key))
        for dropped in gone:
            drop(dropped)

    def forget(self, run: str, lane: str = "") -> None:
        """Drop the loops of ``run`` at and inside ``lane``."""
        with self._lock:
            keys = [key for key in self._lives if key[0] == run and key[1].startswith(lane)]
            gone = [self._lives.pop(key) for key in keys]
        for dropped in gone:
            drop(dropped)

    def __len__(self) -> int:
        return len(self._lives)


def drop(live: Live) -> None:
    """Leave a parked loop, from any thread. One that still runs a step is left to it."""
    if live.users:
        return
    if not live.is_async:
        live.leave()
    elif live.event_loop is not None and live.event_loop.is_running():
        asyncio.run_coroutine_threadsafe(live.leave_async(), live.event_loop)
