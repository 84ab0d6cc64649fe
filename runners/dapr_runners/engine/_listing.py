"""Lists runs, and reads no more of each than tells whether it is wanted."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from dapr.ext.workflow import WorkflowState

from dapr_runners._statuses import RunStatus
from dapr_runners._times import NEVER, utc
from dapr_runners.engine._keys import CANCELLED, end_key, record_key, spec_key
from dapr_runners.engine._overview import Overview
from dapr_runners.engine._run_summary import RunSummary, summary_of
from dapr_runners.engine._turns import unpack_spec
from dapr_runners.engine._work import Record
from dapr_runners.state import UNREADABLE

logger = logging.getLogger("dapr_runners")

Unreadable: TypeAlias = Callable[[str, Exception], None]
"""Is told which run or letter cannot be read, and why, while the others are listed."""

_Found: TypeAlias = tuple[str, WorkflowState | None]
"""A run, and the state of its workflow, if that is scheduled."""
_AT_ONCE = 16
"""Workflows that are asked for at a time: there is no call for several."""
_READ = 50
"""Runs whose specs and ends are read in one call."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs: of a runner, a thread, a status; begun more than ``older`` seconds ago, and less
    than ``newer``."""

    runner: str | None = None
    thread: str | None = None
    status: RunStatus | None = None
    older: float | None = None
    newer: float | None = None

    def is_it(self, run: RunSummary) -> bool:
        """Whether ``run`` is of the runner, thread and status."""
        return (
            self.runner in (None, run.runner)
            and self.thread in (None, run.thread)
            and self.status in (None, run.status)
        )

    def takes(self, begun: datetime | None, now: float) -> bool:
        """Whether a run that was ``begun`` then is of the age, ``now``. One of which that is not
        known is of no age."""
        if begun is None:
            return self.older is None and self.newer is None
        age = now - begun.timestamp()
        return (self.older is None or age > self.older) and (self.newer is None or age < self.newer)


def _warn(run: str, error: Exception) -> None:
    logger.warning("run %s cannot be read: %s", run, error)


async def list_runs(
    runs: Overview, wanted: Wanted, unreadable: Unreadable = _warn
) -> AsyncIterator[RunSummary]:
    """Those of ``runs`` that are ``wanted``, the newest first. Who takes no more than the first few
    has no more read: of each run the state of its workflow is, which tells its runner and its age;
    of those that these leave, in order, spec and end. Of one that cannot be read ``unreadable`` is
    told: whether it is wanted is not known."""
    now = time.time()
    states = [
        (run, state)
        for run, state in await _states(runs)
        if wanted.runner in (None, state.name or wanted.runner)
        and wanted.takes(utc(state.created_at), now)
    ]
    states.sort(key=lambda each: (each[1].created_at, each[0]), reverse=True)
    waiting = await _waiting(runs, wanted, now, unreadable)
    for first in range(0, len(states), _READ):
        for summary in await _readable(runs, [*states[first : first + _READ]], unreadable):
            while waiting and _is_newer(waiting[0], summary):
                yield waiting.pop(0)
            if wanted.is_it(summary):
                yield summary
    for summary in waiting:
        yield summary


async def _waiting(
    runs: Overview, wanted: Wanted, now: float, unreadable: Unreadable
) -> list[RunSummary]:
    """Those that wait for a worker to schedule them, the newest first."""
    ids = [(run, None) for run in await runs.unscheduled(wanted.runner)]
    found = await _readable(runs, [*ids], unreadable) if ids else []
    chosen = [each for each in found if wanted.is_it(each) and wanted.takes(each.created_at, now)]
    return sorted(chosen, key=lambda each: each.created_at or NEVER, reverse=True)


def _is_newer(one: RunSummary, other: RunSummary) -> bool:
    return (one.created_at or NEVER) >= (other.created_at or NEVER)


async def _states(runs: Overview) -> list[tuple[str, WorkflowState]]:
    def all_states() -> list[tuple[str, WorkflowState]]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            ids = list(runs.ids())
            found = zip(ids, pool.map(runs.state, ids), strict=True)
            return [(run, state) for run, state in found if state is not None]

    return await runs.io.call(all_states)


async def _readable(
    runs: Overview, states: list[_Found], unreadable: Unreadable
) -> list[RunSummary]:
    try:
        return await _summaries(runs, states)
    except UNREADABLE as error:
        if len(states) > 1:  # it is one of them
            return [found for one in states for found in await _readable(runs, [one], unreadable)]
        unreadable(states[0][0], error)
        return []


async def _summaries(runs: Overview, states: list[_Found]) -> list[RunSummary]:
    keys = [key for run, _ in states for key in (spec_key(run), end_key(run))]
    found = await runs.io.get_many(keys)
    ends: dict[str, str] = {}
    for run, _ in states:
        at = found.get(end_key(run))
        if at is not None and at != CANCELLED:
            ends[record_key(run, at.decode())] = at.decode()
    records = await runs.io.get_many(list(ends)) if ends else {}
    summaries: list[RunSummary] = []
    for run, state in states:
        spec = found.get(spec_key(run))
        if spec is None:
            continue  # it was purged since it was listed, or is no run of a runner
        at = found.get(end_key(run))
        end: Record | None = None
        if at is not None and (stored := record_key(run, at.decode())) in records:
            end = runs.decode(at.decode(), records[stored], stored)
        about: Any = unpack_spec(runs.codec, spec, run)
        summaries.append(summary_of(run, state, about, at, end, runs.codec))
    return summaries
