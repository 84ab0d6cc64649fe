"""Runs that are recorded and have no workflow yet, as no worker was there to schedule one.

Each runner lists its own (see ``_untold``). That names of runners lead to their lists, one key of
the app has the names of those that ever had any.
"""

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import unscheduled_key
from dapr_runners.engine._listed import change_list, listed
from dapr_runners.engine._untold import START, Untold


async def list_unscheduled(io: IO, runner: str, run: str, mode: str) -> None:
    """List ``run`` of ``runner``, which no worker is there to schedule: whoever works next does."""
    await change_list(
        io, unscheduled_key(), lambda names: None if runner in names else [*names, runner]
    )
    await Untold(runner).add(io, run, f"{START}{mode}")


async def listed_unscheduled(io: IO, runner: str | None = None) -> list[str]:
    """Ids of the runs (of ``runner``) that are listed so, oldest first: of some, somebody may have
    scheduled the workflow since."""
    names = [runner] if runner is not None else await listed(io, unscheduled_key())
    return [run for name in names for run, at in await Untold(name).all(io) if at.startswith(START)]
