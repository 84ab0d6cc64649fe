"""What a run is at, in one line: for who waits in front of a terminal."""

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dapr_runners._times import duration

if TYPE_CHECKING:
    from rich.text import Text

SHOWN_ELSEWHERE = "DAPR_RUNNERS_PROGRESS_SHOWN"
"""Set where the process around shows the progress of all runs."""

_LONG = 1.0
"""Seconds after which it is worth a line that nothing new has happened."""
_LOOK_EVERY = 2.0
"""Seconds between two looks whether a worker is there, while nothing new happens."""
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
    if at.runner:
        line.append(f"{at.runner} ", style="bold")
    if at.step:
        line.append(f"{at.step} ", style="cyan")
    if not at.waits:
        line.append(f"attempt {at.attempt} ")
    line.append(duration(now - at.since))
    if at.waits:
        line.append(f"  {_WAITS[at.waits]}", style="yellow")
        if at.until is not None and at.until > now:
            line.append(f" (in {duration(at.until - now)})", style="yellow")
    if len(all_at) > 1:
        line.append(f"  and {len(all_at) - 1} more", style="dim")
    return line


class _Story:
    """What a run is at, as its events tell. ``is_worker_there`` says whether anybody works."""

    def __init__(self, is_worker_there: Callable[[], bool | None]) -> None:
        self._is_worker_there = is_worker_there
        self._at: dict[str, At] = {}
        self._runner = ""
        self._is_over = False
        self._since = time.time()
        self._looked_at, self._is_alone = 0.0, False

    def see(self, event: dict[str, Any]) -> None:
        kind, now = event["type"], time.time()
        self._since = now
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
                self._is_over = True
            case _:
                pass

    def _new(self, step: str, now: float) -> At:
        return At(self._runner, step, 1, now)

    def line(self) -> "Text | None":
        now = time.time()
        for at in list(self._at.values()):
            if at.until is not None and at.until <= now:
                at.waits, at.until, at.since = "", None, now
        all_at = list(self._at.values())
        if not self._is_over and self._is_left_alone(now):
            all_at = all_at or [At(self._runner, "", 1, self._since)]
            all_at = [at if at.waits else replace(at, waits="worker") for at in all_at]
        return line_of(all_at, now)

    def _is_left_alone(self, now: float) -> bool:
        """Whether nobody works, looked for now and again while nothing happens."""
        if now - self._since < _LONG:
            self._is_alone = False
        elif now - self._looked_at >= _LOOK_EVERY:
            self._is_alone = self._is_worker_there() is False
            self._looked_at = now
        return self._is_alone


async def progress(
    events: AsyncIterator[dict[str, Any]],
    *,
    store_name: str = "statestore",
    host: str | None = None,
    port: str | int | None = None,
) -> AsyncIterator[dict[str, Any]]:
    """The ``events`` of a runner's ``run_async``, as they are. Meanwhile, what takes longer than a
    second is shown at the bottom of the terminal: step, attempt, time, and what it waits for, which
    may be that a worker is there. Nothing is shown where standard error is no terminal, nor beside
    ``dapr-runners run``, which shows it itself. ``store_name``, ``host`` and ``port`` are those of
    the runner."""
    from rich.console import Console

    from dapr_runners._bottom_line import BottomLine
    from dapr_runners.engine import is_worker_there
    from dapr_runners.state import StateStore, sidecar_address

    def is_there() -> bool | None:
        """Opens the store only where the line is shown, and a run does nothing for long."""
        with closing(StateStore(store_name, address=sidecar_address(host, port))) as store:
            return is_worker_there(store)

    story = _Story(is_there)
    console = Console(stderr=True, highlight=False)
    look = (lambda: None) if SHOWN_ELSEWHERE in os.environ else story.line
    with BottomLine(console, look):
        async for event in events:
            story.see(event)
            yield event
