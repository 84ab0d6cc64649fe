"""What the runs of crews ask people, as recorded, and the answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dapr_runners.crewai._asks import is_wait
from dapr_runners.crewai._outcomes import Known, Outcome
from dapr_runners.crewai.errors import AlreadyAnsweredError
from dapr_runners.engine import (
    IO,
    Answers,
    Question,
    QuestionNotFoundError,
    end_key,
    record_key,
    spec_key,
    unpack_record,
)
from dapr_runners.engine.errors import RunNotFoundError
from dapr_runners.state import Codec


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of runs. ``codec`` is that of their runner, or reads plain values only."""

    codec: Callable[[], Codec]
    answers: Answers

    async def open_in(self, io: IO, run: str) -> list[Question]:
        """What ``run`` waits with, oldest first."""
        if await io.get(spec_key(run)) is None:
            raise RunNotFoundError(run_id=run)
        if await io.get(end_key(run)) is not None:
            return []
        await self.answers.telling.remind(io, run)
        open_keys = await self.answers.open_in(io, run)
        found: list[Question] = []
        # Its workflow may not know yet of what it asked last, and will not without a worker.
        newest = await _newest_plan(io, run)
        for plan in dict.fromkeys([*(key.partition(":")[0] for key in open_keys), newest]):
            for key, about in (await self._all_asked(io, run, plan)).items():
                is_open = key in open_keys or plan == newest
                if is_open and await io.get(record_key(run, key)) is None:
                    shown = {k: v for k, v in about.items() if k != "prompt"}
                    found.append(Question(key, about["prompt"], shown))
        return found

    async def answer(self, io: IO, run: str, key: str, value: Any) -> None:
        """Answer the question ``key`` of ``run``. It counts once."""
        plan, _, id = key.partition(":")
        if not plan.isdigit() or not is_wait(id) or key not in await self._all_asked(io, run, plan):
            raise QuestionNotFoundError(run_id=run, key=key)
        data = self.codec().encode(value, "the answer")
        body = {"known": Known(id, outcome=Outcome("value", data)).pack()}
        if await self.answers.settle(io, run, key, id, body):
            return
        at = record_key(run, key)
        stored = await io.get(at)
        first = None if stored is None else unpack_record(self.codec(), key, stored, at)
        if first is not None and first.body["known"]["outcome"]["value"] != data:
            raise AlreadyAnsweredError(run_id=run, key=key)

    async def _all_asked(self, io: IO, run: str, plan: str) -> dict[str, dict[str, Any]]:
        """The questions that a plan tells of, by key."""
        at = record_key(run, plan)
        stored = await io.get(at)
        if stored is None:
            return {}
        record = unpack_record(self.codec(), plan, stored, at)
        if record.outcome["k"] != "plan":
            return {}
        asked = self.codec().decode(record.body["asked"], plan)
        return {f"{plan}:{id}": about for id, about in asked.items() if is_wait(id)}


async def _newest_plan(io: IO, run: str) -> str:
    """The record key of the newest plan: they are numbered from 0, without a gap."""
    last, beyond = 0, 1
    while await io.get(record_key(run, str(beyond))) is not None:
        last, beyond = beyond, beyond * 2
    while beyond - last > 1:
        middle = (last + beyond) // 2
        if await io.get(record_key(run, str(middle))) is not None:
            last = middle
        else:
            beyond = middle
    return str(last)
