"""Kill a program at every point of its runs, start it again, and compare."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from dapr_runners.testing._faults import disturbed
from dapr_runners.testing._lives import Life, Program, new_case
from dapr_runners.testing._observed import Observed, observe
from dapr_runners.testing.errors import NoRunError, ProgramFailedError

_HALFWAY_FROM = 0.05
"""Seconds that a step takes, from which on it is also killed in its middle."""


@dataclass(frozen=True)
class KillPoint:
    """Where a program is killed: when ``step`` reaches ``phase`` for the ``n``-th time: ``begins``,
    ``done``, ``recorded``, ``answered``, or ``halfway``, ``delay`` seconds after it began."""

    step: str
    phase: str
    n: int = 1
    delay: float = 0.0

    def __str__(self) -> str:
        return f"{self.step} {self.phase}" + (f" #{self.n}" if self.n > 1 else "")


@dataclass(frozen=True)
class Crash:
    """What came of a crash, or of another ``fault``, at ``point``.

    ``was_reached``: it was killed there. ``has_finished``: started again, it ended with exit code
    0. ``is_equal``: its runs had the undisturbed results; None where two undisturbed ones differ.
    ``again``: steps that were in flight and ran again, which plain code has to expect. ``doubled``:
    effects that happened twice. ``repeated``: steps that ran again though they were recorded.
    ``more_runs``: how many runs there were more than undisturbed. ``unknown``: effects whose
    outcome nobody knows; their run waits until somebody decides, as it promises.
    """

    point: KillPoint
    was_reached: bool
    has_finished: bool
    is_equal: bool | None
    again: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    more_runs: int = 0
    unknown: tuple[str, ...] = ()
    output: str = field(default="", repr=False)
    fault: str = "killed"

    def __str__(self) -> str:
        return f"{self.fault} when {self.point}"

    @property
    def problems(self) -> list[str]:
        """Sentences, none where all is as it should be."""
        if not self.was_reached:
            return ["the program did not get there this time"]
        found: list[str] = []
        if not self.has_finished and not self.unknown:
            again = ", started again," if self.fault == "killed" else ""
            found.append(f"the program{again} failed")
        if self.is_equal is False:
            found.append("the result is another one")
        if self.doubled:
            found.append(f"happened twice: {', '.join(self.doubled)}")
        if self.repeated:
            found.append(f"ran again though recorded: {', '.join(self.repeated)}")
        if self.more_runs > 0:
            found.append(
                f"{self.more_runs} more run(s): it did not go on with the first. Call with a"
                " thread, a session or a run id"
            )
        return found


class CrashTest:
    """A program under test. Its runs are watched undisturbed when first asked for; and once more
    when a result differs, to know whether results differ by themselves."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._base: Observed | None = None
        self._does_vary: bool | None = None
        self._lock = threading.Lock()

    def points(self) -> list[KillPoint]:
        """Every point that an undisturbed run passes, in order."""
        base = self._undisturbed()
        return list(_points(base))

    def kill_at(self, point: KillPoint) -> Crash:
        """Run the program, kill it at ``point``, and start it again."""
        base = self._undisturbed()
        phase = "begins" if point.phase == "halfway" else point.phase
        at = (point.step, phase, point.n)
        with new_case(self.program) as case:
            life = case.live(at, delay=point.delay)
            was_reached = at in observe(case.told()).points and life.code != 0
            if was_reached:
                life = case.live()
            seen = observe(case.told())
        if point.phase == "begins":  # it was killed before it did anything
            seen.again[point.step] -= 1
        return self._crash(point, was_reached, life, seen, base)

    def disturb_at(self, point: KillPoint, fault: str) -> Crash:
        """Run the program with a fault, one of :data:`FAULTS`, at ``point``. It is not killed, and
        has to end by itself."""
        base = self._undisturbed()
        with new_case(self.program) as case:
            lives = disturbed(case, fault, (point.step, point.phase, point.n))
            seen = observe(case.told())
        worst = max(lives or [Life(None, "", 0.0)], key=lambda life: life.code != 0)
        return self._crash(point, lives is not None, worst, seen, base, fault)

    def _crash(
        self,
        point: KillPoint,
        was_reached: bool,
        life: Life,
        seen: Observed,
        base: Observed,
        fault: str = "killed",
    ) -> Crash:
        is_equal: bool | None = seen.results == base.results
        if not is_equal and (seen.runs > base.runs or seen.unknown or self._varies()):
            is_equal = None
        return Crash(
            point,
            was_reached,
            has_finished=life.code == 0,
            is_equal=is_equal,
            again=_names(seen.again),
            doubled=_names(seen.doubled),
            repeated=_names(seen.repeated),
            more_runs=seen.runs - base.runs,
            unknown=tuple(sorted(seen.unknown)),
            output=life.output,
            fault=fault,
        )

    def faults(
        self, points: Sequence[KillPoint], names: Sequence[str], parallel: int = 1
    ) -> Iterator[Crash]:
        """Each of the faults at each of ``points``, ``parallel`` at once, in order."""
        todo = [(point, name) for name in names for point in points]
        if not todo:
            return
        with ThreadPoolExecutor(parallel) as pool:
            try:
                yield from pool.map(self.disturb_at, *zip(*todo, strict=True))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def crashes(self, points: Sequence[KillPoint], parallel: int = 1) -> Iterator[Crash]:
        """A crash at each of ``points``, ``parallel`` at once, in order."""
        with ThreadPoolExecutor(parallel) as pool:
            try:
                yield from pool.map(self.kill_at, points)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _undisturbed(self) -> Observed:
        with self._lock:
            if self._base is None:
                self._base = self._observe()
            return self._base

    def _varies(self) -> bool:
        """Whether two undisturbed runs have different results."""
        base = self._undisturbed()
        with self._lock:
            if self._does_vary is None:
                self._does_vary = self._observe().results != base.results
            return self._does_vary

    def _observe(self) -> Observed:
        with new_case(self.program) as case:
            life = case.live()
            seen = observe(case.told())
        if life.code != 0:
            raise ProgramFailedError(
                command=self.program.text, how=_how(life, self.program), output=life.output
            )
        if not seen.points:
            raise NoRunError(command=self.program.text)
        return seen


def _how(life: Life, program: Program) -> str:
    if life.code is None:
        return f"did not end within {program.timeout:.0f} s"
    return f"ended with code {life.code}"


def _points(base: Observed) -> Iterator[KillPoint]:
    for step, phase, n in base.points:
        yield KillPoint(step, phase, n)
        took = base.durations.get((step, n), 0.0)
        if phase == "begins" and took >= _HALFWAY_FROM:
            yield KillPoint(step, "halfway", n, round(took / 2, 3))


def _names(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(
        name if count == 1 else f"{name} ({count} x)" for name, count in counts.items() if count > 0
    )
