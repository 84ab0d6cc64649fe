"""What was seen of a program's runs, over all its lives."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_OURS = ("(start)", "(commit)", "(advance)")
"""Steps that call no code of the user's, or only what may run again."""


@dataclass(frozen=True)
class Observed:
    """``points`` are the steps and phases in order, with their count; ``durations`` the seconds
    between the begin and the end of the n-th execution of a step; ``results`` what callers were
    given, sorted; ``runs`` how many runs there were; ``again`` how often a step or an effect that
    was in flight ran again, by name, and ``repeated`` one that was recorded; ``doubled`` how often
    an effect that had happened did so again; ``unknown`` the effects whose outcome nobody knew, so
    that their runs stopped."""

    points: list[tuple[str, str, int]]
    durations: dict[tuple[str, int], float]
    results: list[str]
    runs: int
    again: Counter[str]
    repeated: Counter[str]
    doubled: Counter[str]
    unknown: set[str]


def observe(told: Iterable[dict[str, Any]]) -> Observed:
    """What a log tells."""
    points: list[tuple[str, str, int]] = []
    durations: dict[tuple[str, int], float] = {}
    begun: dict[tuple[int, str, str], tuple[int, float]] = {}
    results: dict[str, str] = {}
    runs: set[str] = set()
    seen: set[tuple[str, str, str]] = set()
    recorded: set[tuple[str, str, str]] = set()
    again: Counter[str] = Counter()
    repeated: Counter[str] = Counter()
    doubled: Counter[str] = Counter()
    happened: set[tuple[str, str, str]] = set()
    unknown: set[str] = set()
    for one in told:
        if "ended" in one:
            results[one["run"]] = f"{one['ended']}: {one['result']}"
        if "unknown" in one:
            unknown.add(one["unknown"])
        if "step" not in one:
            continue
        step, phase, n, run = one["step"], one["phase"], one["n"], one["run"]
        runs.add(run)
        points.append((step, phase, n))
        this = (run, step, one["key"])
        if phase == "begins":
            begun[one["pid"], *this[1:]] = n, one["time"]
            if this in recorded:
                repeated[step] += 1
            elif this in happened and not one["retries"]:
                doubled[step] += 1
            elif this in seen and step not in _OURS:
                again[step] += 1
            seen.add(this)
        elif phase == "done":
            if (began := begun.get((one["pid"], *this[1:]))) is not None:
                durations[step, began[0]] = one["time"] - began[1]
            if step.startswith("@"):
                happened.add(this)
        elif phase == "recorded":
            recorded.add(this)
    return Observed(
        points,
        durations,
        sorted(results.values()),
        len(runs),
        again,
        repeated,
        doubled,
        unknown,
    )
