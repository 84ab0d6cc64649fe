"""What the interrupts of a run ask, as recorded, and the turn that answers one."""

from typing import Any

from langgraph.types import Command

from dapr_runners.engine import (
    Overview,
    Question,
    QuestionNotFoundError,
    Record,
    RunNotFoundError,
    RunStatus,
    artifact_prefix,
)
from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._next_turn import NextTurn
from dapr_runners.langgraph._parts import PartReader
from dapr_runners.state import Artifacts


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
    if (await runs.run(run)).thread is None:
        raise QuestionNotFoundError(run_id=run, key=key)
    turn = await NextTurn.after(runs, run, Command(resume={key: value}))
    if not await turn.is_there() and key not in [each.key for each in await asked(runs, run)]:
        raise QuestionNotFoundError(run_id=run, key=key)
    return await turn.start()
