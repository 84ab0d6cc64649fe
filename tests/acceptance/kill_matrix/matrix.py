"""Runs points side by side, ahead of the tests that ask for them."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from harness.effects import EffectsService
from lane import Lane
from points import Point

from engines import Engine


class Matrix:
    """``width`` lanes that work through ``points`` in order, a few ahead of what is asked for."""

    def __init__(
        self,
        points: list[Point],
        width: int,
        service: EffectsService,
        engine: Engine,
        make_directory: Callable[[str], Path],
    ) -> None:
        self._points = points
        self._width = width
        self._service = service
        self._engine = engine
        self._make_directory = make_directory
        self._pool = ThreadPoolExecutor(width, thread_name_prefix="lane")
        self._futures: dict[Point, Future[None]] = {}
        self._free: SimpleQueue[Lane | None] = SimpleQueue()
        for _ in range(width):
            self._free.put(None)

    def result(self, point: Point) -> None:
        """Returns when the run killed at ``point`` has passed; raises what it failed with."""
        at = self._points.index(point)
        for ahead in self._points[at : at + 2 * self._width]:
            if ahead not in self._futures:
                self._futures[ahead] = self._pool.submit(self._run, ahead)
        self._futures[point].result()

    def close(self) -> None:
        """End all lanes."""
        self._pool.shutdown(cancel_futures=True)
        for _ in range(self._width):
            lane = self._free.get()
            if lane is not None:
                lane.close()

    def _run(self, point: Point) -> None:
        lane = self._free.get()
        try:
            if lane is None or lane.mode != point.mode:
                if lane is not None:
                    lane.close()
                    lane = None
                directory = self._make_directory(point.mode)
                lane = Lane(point.mode, directory, self._service, self._engine)
            lane.kill_at(point)
        except BaseException as error:
            if lane is not None:
                error.add_note(lane.log_text())
                lane.close()
                lane = None
            raise
        finally:
            self._free.put(lane)
