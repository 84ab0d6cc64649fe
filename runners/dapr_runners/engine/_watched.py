"""What the journal and the runners tell whoever watches (see ``_watching``), beyond one call."""

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient

from dapr_runners.engine._attempts import is_dead, process_identity
from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import record_key, spec_key
from dapr_runners.engine._turns import unpack_spec
from dapr_runners.engine._watching import Watch, Watcher
from dapr_runners.engine._work import Json, Record, Work, unpack_record
from dapr_runners.state import Codec


async def tell_lost(
    watch: Watch, work: Work, planner_of: Callable[[Work, IO], Awaitable[str | None]], io: IO
) -> None:
    """Tell of the attempt before this one, if it did not come back."""
    if work.begun < 2 or work.lost is None:
        return
    marked = work.lost.split(" ")
    # One that was not marked began as soon as it was planned.
    began = float(marked[1]) if len(marked) > 1 else work.item.get("told") or time.time()
    identity: str | None = " ".join(marked[2:5]) if len(marked) > 4 else None
    attempt_id = marked[5] if len(marked) > 5 else None
    if identity is None and "at" in work.item:
        identity = await planner_of(work, io)
    if identity is None or is_dead(identity) or not _is_of_this_host(identity):
        number = work.attempt - 1 + work.begun - 1
        watch.lost(number, began, attempt_id, identity)


def _is_of_this_host(identity: str) -> bool:
    return identity.partition(" ")[0] == process_identity().partition(" ")[0]


async def tell_recorded(
    watch: Watch, work: Work, record: Record, size: int, codec: Codec, io: IO
) -> None:
    """Tell that what ``work`` has made is durable, as ``record``."""
    watch.recorded(record.outcome, size)
    if work.lane and record.outcome["k"] == "step" and record.outcome["lane"] != work.lane:
        first = f"{work.lane}0"
        times = record.times
        if first != record.key:
            key = record_key(work.run, first)
            data = await io.get(key)
            times = None if data is None else unpack_record(codec, first, data, key).times
        watch.inner_ended(record.outcome, time.time() if times is None else times[0])


async def tell_ended(
    watcher: Watcher, runner: str, item: Json, record: Record | None, codec: Codec, io: IO
) -> None:
    """Tell that the run of ``item`` has ended, with ``record``, or by being cancelled."""
    about: Json = {}
    run: str = item["run"]
    spec = await io.get(spec_key(run))
    if spec is not None:
        told = unpack_spec(codec, spec, run)
        about |= {"thread": told.get("thread"), "tenant": told.get("tenant")}
    if "trace" not in item:
        key = record_key(run, "0")
        first = await io.get(key)
        times = None if first is None else unpack_record(codec, "0", first, key).times
        about["began"] = None if times is None else times[0]
    status, at = "cancelled", time.time()
    if record is not None:
        status = record.outcome["status"]
        if record.times is not None:
            at = record.times[1]
        if (data := record.body.get("error")) is not None:
            about["error"] = codec.decode(data, f"the error of {record.key}")
    watcher.ended(runner, item, status, about, at)


async def tell_cancelled(
    watcher: Watcher, runner: str, run: str, client: DaprWorkflowClient, codec: Codec, io: IO
) -> None:
    """Tell that ``run`` was cancelled, in whatever process."""
    item = await _base_of(client, run, io)
    await tell_ended(watcher, runner, item, None, codec, io)


async def tell_answered(
    watcher: Watcher,
    runner: str,
    run: str,
    at: str,
    client: DaprWorkflowClient,
    codec: Codec,
    io: IO,
) -> None:
    """Tell that the step of ``run`` that waited for a person was answered, under the key ``at``."""
    planned, _, task = at.partition(":")
    key = record_key(run, planned)
    name, asked = task, None
    data = await io.get(key)
    if data is not None:
        plan = unpack_record(codec, planned, data, key)
        steps: list[Json] = plan.outcome.get("steps", [])
        name = next((step["name"] for step in steps if step["id"] == task), task)
        asked = None if plan.times is None else plan.times[1]
    item = {**await _base_of(client, run, io), "task": task, "n": int(planned), "lane": ""}
    watcher.answered(runner, item, name, asked)


async def _base_of(client: DaprWorkflowClient, run: str, io: IO) -> Json:
    """What every item of ``run`` has."""
    state = await io.call(lambda: client.get_workflow_state(run))
    serialized = None if state is None else state.serialized_input
    return {"run": run, **(base_in(serialized) if serialized else {})}


def base_in(serialized: str) -> Json:
    """What every item of a run has, from the input of its workflow."""
    found: Any = json.loads(serialized)
    if isinstance(found, str):  # the SDK encodes it once more, or not
        found = json.loads(found)
    return dict(found["base"])
