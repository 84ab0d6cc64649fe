"""How far the effects of steps are, for who looks at a run."""

from dataclasses import replace

from dapr_runners.effects._records import EffectRecords
from dapr_runners.engine import Json, Overview, StepSummary, steps_with_effects


async def with_effects(runs: Overview, run: str, steps: list[StepSummary]) -> list[StepSummary]:
    """``steps`` of ``run`` with their effects: each has what names it, its ``status`` and its
    ``attempt``."""
    records = EffectRecords(runs.io, runs.codec)
    told: list[StepSummary] = []
    for step in await steps_with_effects(runs, run, steps):
        effects: list[Json] = []
        for effect in step.effects:
            found = await records.read(run, effect["key"])
            status = "missing" if found is None else found.record.execution_status.value
            attempt = 0 if found is None else found.record.attempt
            effects.append({**effect, "status": status, "attempt": attempt})
        told.append(replace(step, effects=effects) if effects else step)
    return told
