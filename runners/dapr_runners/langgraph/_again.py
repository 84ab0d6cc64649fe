"""A turn that does a step of a run again, and what follows it: a fork from the checkpoint at which
the step was planned."""

from dapr_runners.effects import with_effects
from dapr_runners.engine import (
    Json,
    Overview,
    RetryRefusedError,
    StepNotFoundError,
    StepSummary,
    steps_of,
)
from dapr_runners.langgraph._next_turn import NextTurn

_SETTLED = ("pending", "failed")
"""What is known of an effect that has not happened."""


async def retry_from(runs: Overview, run: str, step: str, again: bool) -> str:
    """Start the turn that does the step ``step`` of ``run`` again: its id as ``show`` tells it, or
    its name, if that is no other's. Where several steps were planned at once, all are done
    again."""
    found = await runs.run(run)
    run = found.run_id
    if not found.status.is_over:
        raise RetryRefusedError(
            run_id=run, reason=f"it is {found.status}", remedy="Wait for its end, or cancel it."
        )
    if found.thread is None:
        raise RetryRefusedError(
            run_id=run,
            reason="it is of no thread, so its state is kept nowhere",
            remedy="Make a new call.",
        )
    steps = await steps_of(runs, run)
    chosen = _chosen(run, steps, step)
    number = int(chosen.partition(":")[0])
    effects = [
        f"{effect['effect']} in {each.name}"
        for each in await with_effects(runs, run, steps)
        if int(each.step_id.partition(":")[0]) >= number
        for effect in each.effects
        if effect["status"] not in _SETTLED
    ]
    if effects and not again:
        raise RetryRefusedError(
            run_id=run,
            reason=f"effects have happened that would happen once more: {', '.join(effects)}",
            remedy="Have them happen again with --again, or go on from a later step.",
        )
    before = await _checkpoint(runs, run, number)
    turn = await NextTurn.after(runs, run, None, before, is_new=True)
    return await turn.start()


def _chosen(run: str, steps: list[StepSummary], step: str) -> str:
    """The id of the step of the graph itself that ``step`` names."""
    own = {each.step_id: each.name for each in steps if "/" not in each.step_id}
    named = [step_id for step_id, name in own.items() if step in (step_id, name)]
    if len(named) != 1:
        known = ", ".join(f"{name} ({step_id})" for step_id, name in own.items())
        raise StepNotFoundError(run_id=run, step=step, steps=known or "none")
    return named[0]


async def _checkpoint(runs: Overview, run: str, number: int) -> Json:
    """Where the saver has the state from which the superstep ``number`` was planned."""
    plan = (await runs.records(run))[str(number)]
    place: Json = plan.body["loop"]["checkpoint_config"]
    arguments: Json = runs.codec.decode((await runs.spec(run))["arguments"], "the arguments")
    if "checkpoint_id" not in place or arguments.get("durability") == "exit":
        raise RetryRefusedError(
            run_id=run,
            reason="its checkpointer has no checkpoint of the state before the step",
            remedy="Make a new call on the thread.",
        )
    return {"checkpoint_id": place["checkpoint_id"], "checkpoint_ns": ""}
