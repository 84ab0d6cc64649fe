"""What a run is at, in one line: for who waits in front of a terminal."""

import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.text import Text

SHOWN_ELSEWHERE = "DAPR_RUNNERS_PROGRESS_SHOWN"
"""Set where the process around shows the progress of all runs."""

_LONG = 1.0
"""Seconds after which it is worth a line that nothing new has happened."""
_WAITS = {
    "worker": "waits for a worker",
    "timer": "waits for its time",
    "retry": "waits for its next attempt",
    "person": "waits for a person",
    "decision": "waits for a decision (dapr-runners dead-letter)",
}


@dataclass(slots=True)
class At:
    """What a run is at. ``since`` and ``until`` are seconds since the epoch; ``waits`` is whom or
    what it waits for: a key of ``_WAITS``, or ""."""

    runner: str
    step: str
    attempt: int
    since: float
    waits: str = ""
    until: float | None = None


def line_of(all_at: list[At], now: float) -> "Text | None":
    """The line for what runs are at, the oldest first; None while nothing takes long."""
    from rich.text import Text

    long = [at for at in all_at if now - at.since >= _LONG]
    if not long:
        return None
    at = long[0]
    line = Text("… ", style="dim")
    line.append(f"{at.runner} ", style="bold")
    if at.step:
        line.append(f"{at.step} ", style="cyan")
    if not at.waits:
        line.append(f"attempt {at.attempt} ")
    line.append(_duration(now - at.since))
    if at.waits:
        line.append(f"  {_WAITS[at.waits]}", style="yellow")
        if at.until is not None and at.until > now:
            line.append(f" (in {_duration(at.until - now)})", style="yellow")
    if len(all_at) > 1:
        line.append(f"  and {len(all_at) - 1} more", style="dim")
    return line


def _duration(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{whole:02}s"


class _Story:
    """What a run is at, as its events tell."""

    def __init__(self) -> None:
        self._at: dict[str, At] = {}
        self._runner = ""

    def see(self, event: dict[str, Any]) -> None:
        kind, now = event["type"], time.time()
        key = str(event.get("node") or event.get("step", ""))
        self._runner = self._runner or str(event.get("workflow_id", "")).rpartition("-")[0]
        match kind:
            case "step_planned" if "nodes" in event:
                self._at = {node: self._new(node, now) for node in event["nodes"]}
            case "step_planned":
                self._at[key] = self._new(str(event.get("name", key)), now)
            case "step_retry":
                at = self._at.setdefault(key, self._new(key, now))
                at.attempt, at.since = event["attempt"], now
                at.waits, at.until = "retry", now + event["after"]
            case "human_input_required":
                asked = self._new(str(event.get("prompt", "")), now)
                asked.waits = "person"
                self._at[str(event["key"]).partition(":")[2]] = asked
            case "step_completed" | "step_failed" | "step_interrupted" | "human_input_received":
                self._at.pop(key, None)
            case _ if kind.startswith("workflow_") and kind != "workflow_started":
                self._at.clear()
            case _:
                pass

    def _new(self, step: str, now: float) -> At:
        return At(self._runner, step, 1, now)

    def line(self) -> "Text | None":
        now = time.time()
        for at in list(self._at.values()):
            if at.until is not None and at.until <= now:
                at.waits, at.until, at.since = "", None, now
        return line_of(list(self._at.values()), now)


async def progress(events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """The ``events`` of a runner's ``run_async``, as they are. Meanwhile, what takes longer than a
    second is shown at the bottom of the terminal: step, attempt, time, and what it waits for.
    Nothing is shown where standard error is no terminal, nor beside ``dapr-runners run``, which
    shows it itself."""
    from rich.console import Console

    from dapr_runners._bottom_line import BottomLine

    story = _Story()
    console = Console(stderr=True, highlight=False)
    look = (lambda: None) if SHOWN_ELSEWHERE in os.environ else story.line
    with BottomLine(console, look):
        async for event in events:
            story.see(event)
            yield event
