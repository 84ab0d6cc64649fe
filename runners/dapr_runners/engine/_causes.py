"""Why a run has failed, if one of its steps has used up what it may: what a dead letter tells, and
what is to be forgotten for the step to run again."""

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import record_key
from dapr_runners.engine._work import Json, Produced, Work, unpack_record
from dapr_runners.engine.errors import PoisonStepError
from dapr_runners.state import Codec


def has_failed(produced: Produced) -> bool:
    """Whether what was produced is a failure, of its step or of its run."""
    outcome = produced.outcome
    return outcome.get("raised") == "error" or (
        outcome["k"] == "end" and outcome["status"] == "failed"
    )


async def cause_of(work: Work, produced: Produced, codec: Codec, io: IO) -> Json | None:
    """The cause of a failure: ``kind`` ("poison", "retries"), ``step``, ``step_id``, ``attempts``,
    in ``undo`` the keys of the records that lead from it to here, and in ``reset`` those of steps
    beside it, whose attempts were counted with its own. None for a failure that nothing was tried
    against."""
    own = _attempts_before(work.key.partition("~")[0], work.attempt)
    told: Json = {
        "step": work.step_name,
        "step_id": step_id(work),
        "attempts": work.attempt - 1 + work.begun,
        "undo": own,
    }
    if isinstance(work.injected, PoisonStepError):
        return {**told, "kind": "poison", "attempts": work.injected.attempts}
    if work.op in ("fuse", "step") and (work.attempt > 1 or produced.gave_up):
        return {**told, "kind": "retries"}
    if work.op == "commit":
        causes = await _causes_in(work, codec, io)
        if causes:
            undo = [key for cause in causes for key in cause["undo"]]
            reset = [key for cause in causes for key in cause.get("reset", ())]
            reset += await _planned(work, codec, io)
            return {**causes[0], "undo": [*undo, *own], "reset": reset}
    return None


def step_id(work: Work) -> str:
    """The key of the step that an item is about, the same for all its attempts; "" for one that is
    between steps."""
    return f"{work.lane}{work.n}:{work.item['task']}" if "task" in work.item else ""


async def _causes_in(work: Work, codec: Codec, io: IO) -> list[Json]:
    keys = [record_key(work.run, at) for _, at in work.item["done"]]
    found = await io.get_many(keys)
    records = [unpack_record(codec, key, found[key], key) for key in keys if key in found]
    return [one.outcome["cause"] for one in records if "cause" in one.outcome]


async def _planned(work: Work, codec: Codec, io: IO) -> list[str]:
    """Keys of the steps of the plan that an item commits."""
    key = record_key(work.run, work.item["at"])
    data = await io.get(key)
    if data is None:
        return []
    steps = unpack_record(codec, key, data, key).outcome["steps"]
    return [f"{work.lane}{work.n}:{step['id']}" for step in steps]


def _attempts_before(key: str, attempt: int) -> list[str]:
    return [key, *(f"{key}~{number}" for number in range(2, attempt + 1))]
