"""The steps of a run, for who operates it: those recorded, those at work, and those to come."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

from dapr_runners._statuses import StepStatus
from dapr_runners.engine._attempts import is_dead
from dapr_runners.engine._effect_keys import begun_in, begun_key
from dapr_runners.engine._keys import attempts_key, end_key
from dapr_runners.engine._overview import Overview
from dapr_runners.engine._poison import Mark
from dapr_runners.engine._roster import roster
from dapr_runners.engine._step_summary import StepSummary, waited
from dapr_runners.engine._steps_told import StepsTold
from dapr_runners.engine._telling import OVER
from dapr_runners.engine._timeline import Open, Timeline
from dapr_runners.engine._work import Record
from dapr_runners.engine.errors import EffectUnknownError, RunCancelledError, RunFailedError


async def steps_of(runs: Overview, run: str) -> list[StepSummary]:
    """The steps of ``run``, as far as recorded or planned, in the order of the plans. One that has
    begun is marked so, if it has taken longer than a moment."""
    run = runs.named(run)
    state = runs.state(run)
    is_over = await runs.io.get(end_key(run)) is not None or (
        state is not None and state.runtime_status.name in OVER
    )
    found = list(Timeline(await runs.records(run), runs.codec).steps())
    marks = {} if is_over else await _marks(runs, run, [o for o in found if isinstance(o, Open)])
    processes: set[str] | None = None
    steps: list[StepSummary] = []
    for each in found:
        if isinstance(each, StepSummary):
            steps.append(each)
            continue
        mark = marks.get(attempts_key(run, each.marked))
        if is_over:
            left = replace(each.summary, status=StepStatus.LEFT)
            steps += [left] if each.is_own else []
        elif each.first is not None:
            began = None if each.first.times is None else each.first.times[0]
            steps.append(_begun(each, StepStatus.WORKING, each.first.attempt, began))
        elif mark is not None:
            if processes is None:
                processes = {member.process for member in roster(runs.store)}
            is_lost = is_dead(mark.process) or (
                not mark.is_of_this_host and mark.process not in processes
            )
            status = StepStatus.LOST if is_lost else StepStatus.WORKING
            earlier = int(each.marked.partition("~")[2] or 1) - 1
            steps.append(_begun(each, status, earlier + mark.number, mark.time))
        elif each.is_own:
            steps.append(each.summary)
    return steps


def _begun(step: Open, status: StepStatus, attempt: int, began: float | None) -> StepSummary:
    after = None if step.plan is None else waited(step.plan, began)
    return replace(step.summary, status=status, attempt=attempt, began=began, waited=after)


async def _marks(runs: Overview, run: str, steps: list[Open]) -> dict[str, Mark]:
    """The marks of the attempts that have begun and not come back, by their state keys."""
    keys = [
        attempts_key(run, each.marked)
        for each in steps
        if each.first is None and each.summary.status is not StepStatus.WAITING
    ]
    found = await runs.io.get_many(keys) if keys else {}
    marks = {key: Mark.read(key, data) for key, data in found.items()}
    return {key: mark for key, mark in marks.items() if mark.process}


async def follow_steps(runs: Overview, run: str) -> AsyncIterator[StepSummary]:
    """The attempts at steps of ``run``, each when it is over, until the run is or is parked."""
    told = StepsTold(runs.codec)
    with suppress(RunCancelledError, RunFailedError, EffectUnknownError):
        async for record in runs.follow(run):
            if isinstance(record, Record):
                for step in told.over_with(record):
                    yield step


async def steps_with_effects(
    runs: Overview, run: str, steps: list[StepSummary]
) -> list[StepSummary]:
    """``steps`` with what names their effects."""
    run = runs.named(run)
    last = {step.step_id: number for number, step in enumerate(steps)}
    scopes = {
        scope: number
        for step_id, number in last.items()
        for scope in {step_id, step_id.partition(":")[2] or step_id}
    }
    markers = {begun_key(run, scope, n): scope for scope in scopes for n in range(2)}
    found = await runs.io.get_many(list(markers)) if markers else {}
    changed = list(steps)
    for scope in {markers[key] for key in found}:
        effects = [about async for _, about in begun_in(run, scope, runs.io)]
        changed[scopes[scope]] = replace(steps[scopes[scope]], effects=effects)
    return changed
