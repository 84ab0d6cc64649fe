"""Interleaved timings, and bars that are met or missed."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A figure and what it may be at most (or, with ``at_least``, at least)."""

    name: str
    value: float
    bar: float
    at_least: bool = False
    unit: str = ""

    @property
    def met(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def __str__(self) -> str:
        side = ">=" if self.at_least else "<="
        verdict = "met" if self.met else "MISSED"
        bar = f"({side} {self.bar:g}{self.unit})"
        return f"{self.name:<58} {self.value:8.2f}{self.unit} {bar} {verdict}"


def interleaved(
    rounds: int, tasks: dict[str, Callable[[], object]], warm: int = 2
) -> dict[str, list[float]]:
    """Milliseconds of each task, one after the other in every round, so that what the machine does
    meanwhile falls on all alike."""
    for _ in range(warm):
        for task in tasks.values():
            task()
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            began = time.perf_counter()
            task()
            times[name].append((time.perf_counter() - began) * 1000)
    return times


def ratio(times: dict[str, list[float]], one: str, other: str) -> float:
    """The median over rounds of ``one`` to ``other``."""
    return statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))


def per(times: list[float], steps: int) -> float:
    """Median milliseconds a step."""
    return statistics.median(times) / steps


def conclude(bars: list[Bar]) -> int:
    """Print the bars and how many are met; 0 when all are."""
    print()
    for bar in bars:
        print(bar)
    missed = [bar.name for bar in bars if not bar.met]
    print(
        f"{len(bars) - len(missed)} of {len(bars)} bars met"
        + (f"; missed: {missed}" if missed else "")
    )
    return 1 if missed else 0
