"""Several runs at once, watched from outside while something is killed."""

import time
from collections import Counter

from harness.cluster import Cluster
from harness.deadline import until

RUNS, STEPS = 4, 16
_HELD = 12
"""The step in which each run is held until something was killed: the test may be slower than it."""


class Load:
    """``RUNS`` runs of ``STEPS`` steps of ``load_graphs``, begun by a process that only calls.
    If ``kills``, none of them ends before :meth:`killed`."""

    def __init__(self, cluster: Cluster, *, kills: bool = True) -> None:
        self._effects = cluster.effects
        self._names = [f"run{number}" for number in range(RUNS)]
        self._runs = [cluster.run_of(name) for name in self._names]
        self._killed_at = 0.0
        self._seen: set[str] = set()
        for name in self._names:
            self._effects.arm(f"{name} {_HELD}", *(["hold"] if kills else []))
        caller = cluster.caller()
        for name in self._names:
            caller.ask("begin", name, {"name": name, "done": 0, "steps": STEPS})
        self._caller = caller

    def wait_underway(self) -> None:
        """Until every run is past its third step."""
        for name in self._names:
            self._effects.wait(f"{name} 3")

    def killed(self) -> None:
        """Something was just killed."""
        self._killed_at = time.monotonic()
        self._seen = set(self._effects.points())
        for name in self._names:
            self._effects.release(f"{name} {_HELD}")

    def seconds_to_progress(self, limit: float = 60) -> float:
        """Seconds from the kill until every run has begun a step that it had not begun before."""

        def progress() -> list[float] | None:
            firsts: dict[str, float] = {}
            for event in self._effects.events():
                name = event["point"].partition(" ")[0]
                if event["point"] not in self._seen and name in self._names:
                    firsts.setdefault(name, event["at"])
            return list(firsts.values()) if len(firsts) == len(self._names) else None

        return max(until(progress, limit, every=0.1) or []) - self._killed_at

    def check_ended(self, in_flight: bool = True) -> None:
        """All runs end, with what they are to give. No step ran more than once but, if steps were
        ``in_flight`` when something died, one of each run, which ran twice."""
        for name in self._names:
            result = self._caller.ask("result", name, 90.0, seconds=100)
            assert result == {"name": name, "done": STEPS, "steps": STEPS}
        counts = Counter(self._effects.points())
        for name in self._names:
            times = [counts[f"{name} {number}"] for number in range(STEPS)]
            assert min(times) == 1, times
            assert max(times) <= 1 + in_flight and sum(times) <= STEPS + in_flight, times
