"""Points between a run's atomic moments, for a worker that is to die exactly there.

They wrap what the runner is given or calls: the state store, the adapter's protocol, the saver. A
point is ``"<turn> <op> <step> <phase>"``, with these phases, in order::

    before      the step is to be done, nothing is done yet
    made        it is done, nothing is stored of it
    stored      what its record refers to is stored, the record is not
    recorded    the record is stored
    flushed     the first write of its outbox has reached the saver, if there is one
    ended       the run is marked as ended, if this ended it
    answer      the activity is over; the sidecar does not know yet
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from dapr_runners.engine import Work, record_key
from dapr_runners.state import StateStore
from harness.effects import Outside

turn: ContextVar[int] = ContextVar("turn")
"""The turn of the run that the current step belongs to."""


class Points:
    """Where the run is, told to the outside."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.tells_of: Callable[[str], bool] = lambda _run: True
        """Which runs are told of: the end of one before may come again late, when its sidecar is
        back."""
        self._names: dict[str, str] = {}
        self._flushing: ContextVar[list[str] | None] = ContextVar("flushing", default=None)

    def reach(self, name: str, phase: str) -> None:
        """The step ``name`` has reached ``phase``."""
        if name:
            self.outside.report(f"{name} {phase}")

    def reach_key(self, key: str, phase: str) -> None:
        """The step that writes the state key ``key`` has reached ``phase``."""
        name = self._names.get(key)
        if name is not None and (not key.startswith("dr/run/") or self.tells_of(key.split("/")[2])):
            self.reach(name, phase)

    def name(self, work: Work) -> str:
        """The name of a step, which the points in it have in common; none for that of a run that is
        not told of."""
        number = int(work.run.rpartition("-")[2])
        turn.set(number)
        if not self.tells_of(work.run):
            return ""
        name = f"{number} {work.op} {work.step_name}"
        self._names[record_key(work.run, work.key)] = name
        return name

    def name_key(self, key: str, name: str) -> None:
        """Call the writing of the state key ``key``, by no step, ``name``."""
        self._names[key] = name

    def reach_flush(self) -> None:
        """Something has reached the saver."""
        if names := self._flushing.get():
            self.reach(names.pop(), "flushed")

    # -- what is wrapped

    def wrap(self, runner: Any) -> None:
        """Put points into ``runner``, before it is started."""
        adapter, journal = runner._adapter, runner._journal
        perform, recorded, execute = adapter.perform, adapter.recorded, journal.execute

        async def perform_with_points(work: Work, io: Any) -> Any:
            name = self.name(work)
            self.reach(name, "before")
            produced = await perform(work, io)
            self.reach(name, "made")
            return produced

        async def recorded_with_points(work: Work, *rest: Any) -> Any:
            token = self._flushing.set([self.name(work)])
            try:
                return await recorded(work, *rest)
            finally:
                self._flushing.reset(token)

        async def execute_with_points(item: Any, io: Any) -> Any:
            outcome = await execute(item, io)
            self.reach(self.name(Work(item)), "answer")
            return outcome

        adapter.perform, adapter.recorded = perform_with_points, recorded_with_points
        journal.execute = execute_with_points


class StoreWithPoints(StateStore):
    """The state store, with points around the records it creates."""

    points: Points | None = None

    def create(self, key: str, value: bytes) -> bool:
        self._reach(key, "stored")
        won = super().create(key, value)
        self._reach_after(key)
        return won

    def create_then(self, key: str, value: bytes, tell: Any) -> None:
        self._reach(key, "stored")

        def tell_with_points(won: bool, error: Exception | None) -> None:
            if error is None:
                self._reach_after(key)
            tell(won, error)

        super().create_then(key, value, tell_with_points)

    async def acreate(self, key: str, value: bytes) -> bool:
        self._reach(key, "stored")
        won = await super().acreate(key, value)
        self._reach_after(key)
        return won

    def _reach_after(self, key: str) -> None:
        run, _, last = key.rpartition("/")
        name = run.rpartition("/")[2]
        if last == "end" and self.points is not None and self.points.tells_of(name):
            self.points.outside.report(f"{run.rpartition('-')[2]} ended")
        self._reach(key, "recorded")

    def _reach(self, key: str, phase: str) -> None:
        if self.points is not None:
            self.points.reach_key(key, phase)


def with_points(saver_class: Any, points: Points) -> Any:
    """A subclass of a saver that tells what has reached it."""

    class SaverWithPoints(saver_class):
        def put(self, *args: Any, **kwargs: Any) -> Any:
            result = super().put(*args, **kwargs)
            points.reach_flush()
            return result

        def put_writes(self, *args: Any, **kwargs: Any) -> Any:
            result = super().put_writes(*args, **kwargs)
            points.reach_flush()
            return result

        async def aput(self, *args: Any, **kwargs: Any) -> Any:
            result = await super().aput(*args, **kwargs)
            points.reach_flush()
            return result

        async def aput_writes(self, *args: Any, **kwargs: Any) -> Any:
            result = await super().aput_writes(*args, **kwargs)
            points.reach_flush()
            return result

    return SaverWithPoints
