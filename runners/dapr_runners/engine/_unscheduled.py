"""Runs that are recorded and have no workflow yet, as no worker was there to schedule one.

Each runner lists its own (see ``_untold``). That names of runners lead to their lists, one key of
the app has the names of those that ever had any.
"""

from typing import TYPE_CHECKING

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import unscheduled_key
from dapr_runners.engine._listed import change_list, listed
from dapr_runners.engine._tenants import mark_of
from dapr_runners.engine._untold import START, Untold

if TYPE_CHECKING:
    from dapr_runners.engine._overview import Overview


async def list_unscheduled(io: IO, runner: str, run: str, mode: str) -> None:
    """List ``run`` of ``runner``, which no worker is there to schedule: whoever works next does."""
    await change_list(
        io, unscheduled_key(), lambda names: None if runner in names else [*names, runner]
    )
    await Untold(runner).add(io, run, f"{START}{mode}")


async def unscheduled(runs: "Overview", runner: str | None = None) -> list[str]:
    """Ids of the runs (of ``runner``) that wait for a worker to schedule them, oldest first."""
    names = [runner] if runner is not None else await listed(runs.io, unscheduled_key())
    found: list[str] = []
    for name in names:
        for run, at in await Untold(name).all(runs.io):
            is_seen = runs.mark in (None, mark_of(run))
            if at.startswith(START) and is_seen and runs.state(run) is None:
                found.append(run)
    return found
