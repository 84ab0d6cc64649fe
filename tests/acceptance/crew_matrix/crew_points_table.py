"""Every point at which a process is killed, and what must hold whatever the point is."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

TARGETS = ("worker", "sidecar")
SIDECAR_DEAD = "the sidecar is dead"
"""A point that the test tells of."""


@dataclass(frozen=True)
class Program:
    """A crew or a flow of ``crews.py``."""

    calls: tuple[str, ...]
    """Keys of its calls of models and tools."""
    result: str
    plans: int = 0
    """How many activities drive it on, where that is no matter of chance."""
    width: int = 1
    """How many calls may be in flight."""


def _calls(strand: str, *calls: str) -> tuple[str, ...]:
    return tuple(f"{strand}!{call}" for call in calls)


def _searching(strand: str, count: int) -> tuple[str, ...]:
    """An agent that searches ``count`` times, then answers."""
    rounds = [(f"llm.{number}", f"tool.{number}") for number in range(count)]
    return _calls(strand, *(call for each in rounds for call in each), f"llm.{count}")


PROGRAMS = {
    "two_agents": Program(
        calls=(*_searching("main.crew.task0", 2), *_searching("main.crew.task1", 1)),
        result="a report",
        plans=5,
    ),
    "hierarchical": Program(
        calls=(*_searching("main.crew.task0", 2), *_calls("main.crew.task0", "llm.3", "llm.4")),
        result="managed",
        plans=5,
    ),
    "flow": Program(
        calls=(
            *_searching("main.flow-Steps+left.body", 1),
            *_searching("main.flow-Steps+right.body", 1),
            *_searching("main.flow-Steps+end.body", 1),
        ),
        result="result end 1",
        width=2,
    ),
    "three_at_once": Program(
        calls=(
            *_searching("main.crew+async.task0", 2),
            *_searching("main.crew+async-1.task1", 2),
            *_searching("main.crew+async-2.task2", 2),
            "main.crew.task3!llm.0",
        ),
        result="all",
        width=3,
    ),
}


@dataclass(frozen=True)
class Point:
    """Where ``target`` is killed in a run of ``program``."""

    target: str
    program: str
    name: str
    """As the worker reports it; see ``harness.crew_points``."""

    def __str__(self) -> str:
        return f"{self.target}-{self.program}-{self.name.replace(' ', '-')}"


def names(program: Program) -> list[str]:
    """The points of a run."""
    found: list[str] = []
    for call in program.calls:
        phases = ["starts", "ends"]
        if "!tool." in call:
            # A tool has an activity of its own; a model may be asked inside another.
            phases = ["before", *phases, "stored", "recorded", "answer"]
        found += [f"{call} {phase}" for phase in phases]
    for plan in range(program.plans):
        # It may go on in the same activity, so that not each is answered.
        found += [f"plan {plan} {phase}" for phase in ("before", "stored", "recorded")]
    return found


def all_points() -> list[Point]:
    """The whole matrix."""
    return [
        Point(target, name, at)
        for target in TARGETS
        for name, program in PROGRAMS.items()
        for at in names(program)
    ]


def check_calls(events: list[dict[str, Any]], program: Program, killed: int | None) -> None:
    """Every call was made, none that was recorded again, and one that was in flight at most once
    more, when the worker with the process id ``killed`` died, or (None) the sidecar. Other threads
    of the worker went on for a moment after the point that was waited for."""
    seen = [event["point"] for event in events]
    pids = [event["pid"] for event in events]
    death = seen.index(SIDECAR_DEAD) if killed is None else len(pids) - 1 - pids[::-1].index(killed)
    starts: dict[str, list[int]] = defaultdict(list)
    for place, point in enumerate(seen):
        if point.endswith(" starts"):
            starts[point.removesuffix(" starts")].append(place)
    assert set(starts) == set(program.calls)
    again = {call: places for call, places in starts.items() if len(places) > 1}
    assert all(len(places) == 2 for places in again.values()), again
    assert len(again) <= program.width, again
    for call, (first, second) in again.items():
        assert first <= death < second, f"{call} was not in flight"
        assert not _is_recorded(call, seen[: death + 1], first), f"{call} was recorded"


def _is_recorded(call: str, seen: list[str], start: int) -> bool:
    """Whether the record that holds ``call``, which starts at ``start``, is written in ``seen``."""
    after = seen[start:]
    if f"{call} ends" not in after:
        return False
    after = after[after.index(f"{call} ends") :]
    if f"{call} before" in seen[:start]:  # it has an activity of its own
        return f"{call} recorded" in after
    return any(point.startswith("plan ") and point.endswith(" recorded") for point in after)
