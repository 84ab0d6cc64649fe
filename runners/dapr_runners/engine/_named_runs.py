"""The newest run of a thread, for who reads."""

from datetime import datetime

from dapr_runners._times import NEVER, utc
from dapr_runners.engine._keys import spec_key
from dapr_runners.engine._overview import Overview
from dapr_runners.engine._run_summary import called_at
from dapr_runners.engine._tenants import mark_of
from dapr_runners.engine._turns import Turns, no_base, unpack_spec
from dapr_runners.engine.errors import AmbiguousThreadError, RunNotFoundError


async def newest_of(runs: Overview, thread: str, runner: str | None = None) -> str:
    """The id of the newest run of ``thread`` that is recorded. Without a ``runner``, all runs are
    looked through; so are they where the newest was purged. Raises :class:`RunNotFoundError`, and
    :class:`AmbiguousThreadError` if several runners have the thread."""
    found = None if runner is not None else await _runs_of(runs, thread)
    names = {runner} if found is None else set(found)
    if len(names) > 1:
        known = ", ".join(sorted(str(name) for name in names))
        raise AmbiguousThreadError(thread=thread, runners=known)
    for name in names:
        assert name is not None
        turns = Turns(name, runs.codec, lambda: runs.client, no_base, runs.mark or "")
        pointer = await turns.pointer(runs.io, thread)
        # Its spec is written after the pointer, and deleted by a purge.
        if pointer is not None and (
            pointer.spec or await runs.io.get(spec_key(pointer.run)) is not None
        ):
            return pointer.run
        left = (found or await _runs_of(runs, thread)).get(name)
        if left:
            return max(left)[1]
    raise RunNotFoundError(run_id=f"(newest of thread {thread})")


async def _runs_of(runs: Overview, thread: str) -> dict[str, list[tuple[datetime, str]]]:
    """The runs of ``thread``, each with when it was begun, by their runners."""
    ids = list(dict.fromkeys([*runs.ids(), *await runs.unscheduled()]))
    specs = await runs.io.get_many([spec_key(run) for run in ids]) if ids else {}
    found: dict[str, list[tuple[datetime, str]]] = {}
    for run in ids:
        data = specs.get(spec_key(run))
        if data is None or mark_of(run) != (runs.mark or ""):
            continue
        spec = unpack_spec(runs.codec, data, run)
        if spec.get("thread") == thread:
            state = runs.state(run)
            created = called_at(spec) if state is None else utc(state.created_at)
            name = spec.get("runner") or (state.name if state else "")
            found.setdefault(name, []).append((created or NEVER, run))
    return found
