"""What the interrupts of a run ask, as recorded, and a turn that answers one."""

from typing import Any

from langgraph.types import Command

from dapr_runners.engine import (
    Json,
    Overview,
    Question,
    QuestionNotFoundError,
    Record,
    RunNotFoundError,
    RunStatus,
    Turns,
    artifact_prefix,
    base_in,
    digest,
    mark_of,
    pack_spec,
    require_worker,
)
from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._parts import PartReader
from dapr_runners.langgraph._specs import Call
from dapr_runners.langgraph._types import language_codec
from dapr_runners.state import Artifacts

_OF_A_TURN = ("checkpoint_id", "checkpoint_map")
"""Entries of a config that say from where the turn before went on."""


async def asked(runs: Overview, run: str) -> list[Question]:
    """What ``run``, which has ended with interrupts, asks: all that the saver was told of, and no
    task has gone on from. Empty for a run that nobody can answer, or of an older turn."""
    summary = await runs.run(run)
    if summary.status is not RunStatus.INTERRUPTED or summary.thread is None:
        return []
    turns = runs.turns(summary.runner, summary.run_id)
    try:
        if await turns.current(runs.io, summary.thread) != summary.run_id:
            return []
    except RunNotFoundError:
        return []
    records = await runs.records(run)
    waiting: dict[str, list[Any]] = {}
    names: dict[str, str] = {}
    for record in sorted(records.values(), key=_place):
        if record.outcome["k"] == "plan":
            names.update({step["id"]: step["name"] for step in record.outcome["steps"]})
        artifacts = Artifacts(runs.store, artifact_prefix(summary.run_id))
        reader = PartReader(runs.codec, artifacts.get_many(record.body.get("artifacts", ())))
        for entry in record.outbox:
            _follow(entry, waiting, reader)
    return [
        Question(each.id, each.value, {"node": names.get(task, "")})
        for task, interrupts in waiting.items()
        for each in interrupts
    ]


def _follow(entry: list[Any], waiting: dict[str, list[Any]], reader: PartReader) -> None:
    """What becomes of the tasks that wait, when ``entry`` of an outbox is sent."""
    kind, config = entry[:2]
    if config["configurable"].get("checkpoint_ns"):
        return  # of a subgraph: the task around it tells of its interrupts as well
    if kind == "put":
        waiting.clear()
        return
    writes, task = entry[2:4]
    found = [reader.get(ref, channel) for channel, ref in writes if channel == lg.INTERRUPT]
    if found:
        waiting[task] = [each for one in found for each in one]
    elif writes:
        waiting.pop(task, None)


def _place(record: Record) -> tuple[int, bool, str]:
    """Steps come before what commits them."""
    number, colon, _ = record.key.partition("/")[0].partition("~")[0].partition(":")
    return (int(number) if number.isdigit() else 0), bool(colon), record.key


async def answer(runs: Overview, run: str, key: str, value: Any) -> str:
    """Start the turn that answers the interrupt ``key`` of ``run`` with ``value`` (plain data): the
    id of its run. The same answer again gives the same turn."""
    summary = await runs.run(run)
    run, thread = summary.run_id, summary.thread
    spec, state = await runs.spec(run), runs.state(run)
    if state is None or thread is None:
        raise QuestionNotFoundError(run_id=run, key=key)
    base = base_in(state.serialized_input)
    packed, fingerprint = _turn(runs, spec, summary.runner, Command(resume={key: value}))
    turns = Turns(
        summary.runner,
        runs.codec,
        lambda: runs.client,
        lambda new, mode: {**base, "run": new, "mode": mode},
        mark_of(run),
    )
    pointer = await turns.pointer(runs.io, thread)
    is_given = pointer is not None and pointer.fingerprint == fingerprint
    if not is_given and key not in [question.key for question in await asked(runs, run)]:
        raise QuestionNotFoundError(run_id=run, key=key)
    await require_worker(runs.io, runs.client, runs.worker.address, run)
    claim = await turns.claim(
        runs.io,
        thread=thread,
        fingerprint=fingerprint,
        spec=packed,
        mode=base["mode"],
        strategy="reject",
        cancel=lambda _: None,
        before_schedule=lambda _: None,
    )
    return claim.run


def _turn(runs: Overview, spec: Json, runner: str, command: Command[Any]) -> tuple[bytes, str]:
    """The spec of a turn that goes on from the one of ``spec`` with ``command``, and what tells it
    from others: what the program would have, if it made the call itself."""
    codec = language_codec()
    config: Json = runs.codec.decode(spec["config"], "config")
    configurable: Json = config.get("configurable") or {}
    if "run_id" in config or not configurable.keys().isdisjoint(_OF_A_TURN):
        config.pop("run_id", None)
        kept = {name: each for name, each in configurable.items() if name not in _OF_A_TURN}
        spec = {**spec, "config": codec.encode({**config, "configurable": kept}, "config")}
    arguments: Json = runs.codec.decode(spec["arguments"], "the arguments of the call")
    packed: Json = {**spec, "input": codec.encode(command, "the input")}
    for name in ("fingerprint", "call"):
        packed.pop(name, None)
    call = Call(command, {}, arguments, packed["context"] is not None, None, packed["saver"])
    fingerprint = digest(runner, call.fingerprint(codec, packed))
    return pack_spec(codec, fingerprint, packed), fingerprint
