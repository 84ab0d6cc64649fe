"""Lists runs, and reads no more of each than tells whether it is wanted."""

import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from dapr.ext.workflow import WorkflowState

from dapr_runners._statuses import RunStatus
from dapr_runners.engine._keys import CANCELLED, end_key, record_key, spec_key
from dapr_runners.engine._overview import Overview, RunSummary
from dapr_runners.engine._turns import unpack_spec
from dapr_runners.engine._work import Record
from dapr_runners.state import UNREADABLE

logger = logging.getLogger("dapr_runners")

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


async def list_runs(runs: Overview, wanted: Wanted) -> AsyncIterator[RunSummary]:
    """Those of ``runs`` that are ``wanted``, the newest first. Who takes no more than the first few
    has no more read: of each run the state of its workflow is, which tells its runner and its age;
    of those that these leave, in order, spec and end."""
    now = time.time()
    states = [(run, state) for run, state in await _states(runs) if _may_be(state, wanted, now)]
    states.sort(key=lambda each: (each[1].created_at, each[0]), reverse=True)
    for first in range(0, len(states), _READ):
        for summary in await _readable(runs, states[first : first + _READ]):
            is_wanted = (
                wanted.runner in (None, summary.runner)
                and wanted.thread in (None, summary.thread)
                and wanted.status in (None, summary.status)
            )
            if is_wanted:
                yield summary


async def _states(runs: Overview) -> list[tuple[str, WorkflowState]]:
    def all_states() -> list[tuple[str, WorkflowState]]:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            ids = list(runs.ids())
            found = zip(ids, pool.map(runs.state, ids), strict=True)
            return [(run, state) for run, state in found if state is not None]

    return await runs.io.call(all_states)


def _may_be(state: WorkflowState, wanted: Wanted, now: float) -> bool:
    begun = state.created_at
    if begun.tzinfo is None:
        begun = begun.replace(tzinfo=UTC)
    age = now - begun.timestamp()
    return (
        wanted.runner in (None, state.name or wanted.runner)
        and (wanted.older is None or age > wanted.older)
        and (wanted.newer is None or age < wanted.newer)
    )


async def _readable(runs: Overview, states: list[tuple[str, WorkflowState]]) -> list[RunSummary]:
    try:
        return await _summaries(runs, states)
    except UNREADABLE as error:
        if len(states) > 1:  # it is one of them
            return [found for each in states for found in await _readable(runs, [each])]
        logger.warning("run %s cannot be read: %s", states[0][0], error)
        return []


async def _summaries(runs: Overview, states: list[tuple[str, WorkflowState]]) -> list[RunSummary]:
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
        summaries.append(runs.summary(run, state, about, at, end))
    return summaries
