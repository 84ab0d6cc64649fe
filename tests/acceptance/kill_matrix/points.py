"""Every point at which a process is killed, and what must hold whatever the point is."""

from dataclasses import dataclass
from itertools import chain
from typing import Any

STAGES: dict[int, list[list[tuple[str, str]]]] = {
    1: [
        [("begin", "__start__")],
        [("fuse", "read")],
        [("fuse", "plan")],
        [("step", "left"), ("step", "right")],
        [("commit", "__commit__")],
        [("fuse", "review")],
    ],
    2: [
        [("begin", "__start__")],
        [("fuse", "review")],
        [("begin", "sub")],
        [("fuse", "sub/draft")],
        [("step", "sub/check"), ("step", "sub/grade")],
        [("commit", "sub/__commit__")],
        [("commit", "__commit__")],
    ],
}
"""The activities of both turns; each stage depends on those before it."""

MODES = ("sync", "async", "fast")
TARGETS = ("worker", "sidecar")


@dataclass(frozen=True)
class Point:
    """Where ``target`` is killed in a run of ``mode``."""

    target: str
    mode: str
    turn: int
    name: str
    """As the worker reports it; see ``harness.hooks``."""

    def __str__(self) -> str:
        return f"{self.target}-{self.mode}-{self.name.replace(' ', '-')}"


def names(mode: str, turn: int) -> list[str]:
    """The points of one turn, stage by stage."""
    found: list[str] = []
    for op, step in chain.from_iterable(STAGES[turn]):
        node = step.rpartition("/")[2]
        inside = []
        if op in ("fuse", "step"):
            inside = [f"{turn} {node} {phase}" for phase in ("start", "in", "end")]
        phases = ["made", "stored", "recorded", "flushed"]
        if mode != "fast" or op != "fuse":
            # In the fast lane a fused step is part of the activity before it.
            phases.append("answer")
        full = f"{turn} {op} {step}"
        found += [f"{full} before", *inside, *(f"{full} {phase}" for phase in phases)]
    return [*found, f"{turn} ended"]


def all_points() -> list[Point]:
    """The whole matrix. A node's start and end are its neighbours' points, but for the counter."""
    return [
        Point(target, mode, turn, name)
        for target in TARGETS
        for mode in MODES
        for turn in STAGES
        for name in names(mode, turn)
        if not name.endswith((" start", " end"))
    ]


def check_effects(events: list[dict[str, Any]], killed: int | None, at: str | None) -> None:
    """Nothing recorded runs again, what was in flight at most once more, and no step begins before
    what it depends on is recorded. ``killed`` is the process that died, if ``at`` killed one."""
    seen = [event["point"] for event in events]
    pids = [event["pid"] for event in events]
    kill = len(seen)
    if at is not None:
        kill = seen.index(at) if killed is None else len(pids) - 1 - pids[::-1].index(killed)

    def recorded_at(op: str, step: str) -> int:
        name = f"{turn} {op} {step}"
        if f"{name} recorded" in seen:
            return seen.index(f"{name} recorded")
        # It died between writing the record and saying so.
        assert killed is not None and f"{name} stored" in seen[: kill + 1], f"{name}: no record"
        return kill

    for turn, stages in STAGES.items():
        last_record = -1
        for stage in stages:
            for op, step in stage:
                if op not in ("fuse", "step"):
                    continue
                node = f"{turn} {step.rpartition('/')[2]} start"
                starts = [place for place, name in enumerate(seen) if name == node]
                recorded = recorded_at(op, step)
                assert starts, f"{step} did not run"
                assert starts[0] > last_record, f"{step} ran before what is before it was recorded"
                assert starts[-1] < recorded, f"{step} ran again although it was recorded"
                was_in_flight = starts[0] <= kill <= recorded
                assert len(starts) <= 1 + was_in_flight, f"{step} ran {len(starts)} times"
            last_record = max(recorded_at(op, step) for op, step in stage)
