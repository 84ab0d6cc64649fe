"""Starts a failed run again, from the step that it has failed of.

What is recorded stays, but for the failed step and what came of it: a workflow of the same run goes
over the records, as after any kill, and does that step again.
"""

from collections.abc import Mapping
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._ending import ENDING_SECONDS, at_rest, settled
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import attempts_key, end_key, record_key, sent_key, spec_key
from dapr_runners.engine._telling import OVER, require_worker, tell_now
from dapr_runners.engine._turns import Turns, named, unpack_spec
from dapr_runners.engine._watched import base_in
from dapr_runners.engine._work import AGAIN, Json, unpack_record
from dapr_runners.engine.errors import (
    RetryRefusedError,
    RunNotEndedError,
    RunNotFoundError,
    RunSupersededError,
    WorkflowEngineUnavailableError,
)
from dapr_runners.state import Codec

_AT_WORK = "awaiting an activity"
"""What a sidecar answers when the workflow before has an activity that has not ended."""


async def restart(
    io: IO,
    client: DaprWorkflowClient,
    turns: Turns,
    codec: Codec,
    runner: str,
    run: str,
    undo: list[str],
    reset: list[str],
    given: Mapping[str, bytes],
    address: str,
) -> None:
    """Start ``run`` of ``runner`` again, without the records ``undo``, with those ``given`` by
    their keys, and counting the attempts at ``reset`` anew. Without a worker at the sidecar at
    ``address``, raises :class:`WorkerMissingError` and changes nothing. Done twice, it does no
    harm: who does it may die in between."""
    spec = await io.get(spec_key(run))
    if spec is None:
        raise RunNotFoundError(run_id=run)
    thread: str | None = unpack_spec(codec, spec, run).get("thread")
    if thread is not None and await turns.current(io, thread) != run:
        raise RunSupersededError(run_id=run, thread=thread)
    state = await settled(io, client, run, ENDING_SECONDS, payloads=True)
    if state is None:
        raise RunNotFoundError(run_id=run)
    if state.runtime_status.name not in OVER:
        raise RunNotEndedError(run_id=run)
    # Nothing is deleted of a run that nobody can start.
    await require_worker(io, client, address, run)
    base = base_in(state.serialized_input)
    base[AGAIN] = base.get(AGAIN, 0) + 1
    if reset:
        await at_rest(io)
    undo = [*undo, *await _failed_beside(io, codec, run, reset)]
    records = [record_key(run, key) for key in undo]
    counts = [attempts_key(run, key) for key in {*undo, *reset}]
    sent = [sent_key(run, key) for key in undo]
    if given:
        await io.put_many(given)
    undone = [*records, *counts, *sent, end_key(run)]
    before = await io.get_many(undone)
    await io.delete_many(undone)
    if thread is not None:
        await turns.expected(io, thread, run)
    request: Json = {"base": base, "runner": runner}
    untyped: Any = client
    workflow = named(runner)
    try:
        await tell_now(
            io,
            address,
            lambda: untyped.schedule_new_workflow(workflow, input=request, instance_id=run),
        )
    except WorkflowEngineUnavailableError as error:
        await io.put_many(before)
        if _AT_WORK not in error.detail:
            raise
        raise RetryRefusedError(
            run_id=run,
            reason="a step of it is still at work",
            remedy="Do it again when that step has come back.",
        ) from error


async def _failed_beside(io: IO, codec: Codec, run: str, steps: list[str]) -> list[str]:
    """Those of ``steps`` whose record tells that they have failed as well, of the same."""
    stored = {record_key(run, step): step for step in steps}
    found = await io.get_many(list(stored))
    records = [unpack_record(codec, stored[at], data, at) for at, data in found.items()]
    return [record.key for record in records if "cause" in record.outcome]
