"""The outside world: a process that counts effects, and says who dies where.

``python effects_service.py SOCKET``. Each connection is one JSON request, answered by one JSON
line. A worker reports *points* it passes; the test arms a point with what is to happen there:

``die``    the worker is told to kill itself
``hold``   the worker's report is answered when the test releases the point
``raise``  the worker is told to raise an error
"""

import asyncio
import json
import sys
import time
from collections import defaultdict
from typing import Any

Json = dict[str, Any]


class Service:
    """Events and armed points, by case."""

    def __init__(self) -> None:
        self._events: dict[str, list[Json]] = defaultdict(list)
        self._armed: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._released: dict[tuple[str, str], asyncio.Event] = {}
        self._news = asyncio.Event()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = json.loads(await reader.readline())
            reply = await getattr(self, f"do_{request.pop('do')}")(**request)
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        except (ConnectionError, json.JSONDecodeError):
            pass  # the one who asked was killed
        finally:
            writer.close()

    async def do_report(self, case: str, point: str, **more: Any) -> Any:
        self._events[case].append({"point": point, "at": time.monotonic(), **more})
        armed = self._armed[case, point]
        action = armed.pop(0) if armed else "go"
        news, self._news = self._news, asyncio.Event()
        news.set()
        if action == "hold":
            await self._gate(case, point).wait()
            action = "go"
        return action

    async def do_arm(self, case: str, point: str, actions: list[str]) -> Any:
        self._armed[case, point] = actions

    async def do_release(self, case: str, point: str) -> Any:
        self._gate(case, point).set()

    async def do_events(self, case: str) -> Any:
        return self._events[case]

    async def do_wait(self, case: str, point: str, count: int, seconds: float) -> Any:
        """Answers once ``point`` was reported ``count`` times; false if that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while sum(event["point"] == point for event in self._events[case]) < count:
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _gate(self, case: str, point: str) -> asyncio.Event:
        return self._released.setdefault((case, point), asyncio.Event())


async def main(path: str) -> None:
    server = await asyncio.start_unix_server(Service().answer, path)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    # Its standard input closes when the test ends, however it ends.
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(0, ended.set)
    await ended.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
