"""What came of crashes, for people to read."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from dapr_runners.testing._crash_test import Crash


def table(title: str, crashes: Sequence[Crash]) -> Table:
    """A row a kill point."""
    shown = Table("", "ended", "result", "ran again, was in flight", "problems")
    shown.title = escape(title)
    for crash in crashes:
        style = "red" if crash.problems else ""
        shown.add_row(
            escape(str(crash)),
            _ended(crash),
            _RESULTS[crash.is_equal] if crash.has_finished and crash.was_reached else "",
            escape(", ".join(crash.again)),
            escape("; ".join(crash.problems)),
            style=style,
        )
    return shown


def _ended(crash: Crash) -> str:
    if not crash.was_reached:
        return ""
    if crash.unknown:
        return "stopped at UNKNOWN"
    return "yes" if crash.has_finished else "no"


_RESULTS = {True: "equal", False: "another", None: "not compared"}


def summary(crashes: Sequence[Crash]) -> str:
    """One sentence."""
    bad = sum(bool(crash.problems) for crash in crashes)
    told = f"{len(crashes)} crashes"
    return f"{told}, {bad} with problems." if bad else f"{told}, and the program got over each."
