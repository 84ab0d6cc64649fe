"""Lets a run go on that has failed or was cancelled, from where it was.

What is recorded stays and is not done again, but for what it has failed of; so what its effects
have done counts.
"""

from collections.abc import Iterable

from dapr_runners._statuses import RunStatus
from dapr_runners.engine._dead_letters import FAILED
from dapr_runners.engine._ending import at_rest
from dapr_runners.engine._overview import Overview
from dapr_runners.engine._restart import restart
from dapr_runners.engine._work import Record
from dapr_runners.engine.errors import RetryRefusedError


async def retry(runs: Overview, run: str) -> None:
    """Start ``run`` again, with what it has failed of. Raises :class:`RetryRefusedError` for one
    that has not failed and was not cancelled, :class:`RunSupersededError` when its thread has gone
    on, and :class:`WorkerMissingError`."""
    found = await runs.run(run)
    run = found.run_id
    if found.status not in (RunStatus.FAILED, RunStatus.CANCELLED):
        raise RetryRefusedError(
            run_id=run,
            reason=f"it is {found.status}, and there is nothing that it has failed of",
            remedy="To do a step of it again, name the step.",
        )
    end = await runs.end_of(run)
    if end is not None and "cause" not in end.outcome:
        await at_rest(runs.io)  # a step may be failing beside the one that ended it
    undo, reset = ([], []) if end is None else _undo(end, (await runs.records(run)).values())
    turns = runs.turns(found.runner, run)
    address = runs.worker.address
    await restart(
        runs.io, runs.client, turns, runs.codec, found.runner, run, undo, reset, {}, address
    )
    if end is not None:
        await runs.letters.remove(runs.io, run, f"{FAILED}{end.key}")


def _undo(end: Record, records: Iterable[Record]) -> tuple[list[str], list[str]]:
    """Keys of the records to be forgotten: the end, and the failed steps it came of; and of steps
    beside those, whose attempts were counted with theirs."""
    if (cause := end.outcome.get("cause")) is not None:
        return cause["undo"], cause.get("reset", [])
    undone = {end.key.partition("~")[0]}
    past: list[str] | None = end.outcome.get("past")
    for record in records:
        outcome, key = record.outcome, record.key.partition("~")[0]
        is_failure = outcome.get("raised") == "error" and not outcome.get("more")
        if is_failure and (_is_before(key, end.key) if past is None else record.key in past):
            undone.add(key)
    tried = [record.key for record in records if record.key.partition("~")[0] in undone]
    return sorted({*undone, *tried}), []


def _is_before(key: str, end: str) -> bool:
    """Whether ``key`` is of the superstep that ended with ``end``, or in one of its subgraphs."""
    number = end.partition("~")[0]
    return number.isdigit() and key.startswith(f"{int(number) - 1}:")
