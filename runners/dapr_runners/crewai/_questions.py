"""The questions that runs wait with, and their answers."""

from dataclasses import dataclass
from typing import Any

from dapr_runners.crewai._asks import is_wait
from dapr_runners.crewai._outcomes import Known, Outcome
from dapr_runners.crewai._sessions import SessionsRunner
from dapr_runners.crewai._types import Types
from dapr_runners.crewai.errors import AlreadyAnsweredError, QuestionNotFoundError
from dapr_runners.engine import IO, record_key, run_in_thread


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question that a run waits with: ``key`` is for answer(), ``about`` says where it came up
    (``crew``, ``task``, ``flow``, ``metadata``, as far as known)."""

    key: str
    prompt: str
    about: dict[str, Any]


class QuestionsRunner(SessionsRunner):
    """Tells what runs ask people, and takes the answers."""

    _types: Types

    def pending(
        self, session_id: str | None = None, *, run_id: str | None = None
    ) -> list[PendingQuestion]:
        """The questions that a run waits with, oldest first."""
        run = self._resolve(run_id, session_id)
        return run_in_thread(self._questions(self._blocking(), run))

    def answer(
        self,
        session_id: str | None,
        key: str,
        value: Any,
        *,
        run_id: str | None = None,
    ) -> None:
        """Answer the question ``key`` (of :meth:`pending`) with ``value``, a text. It counts once:
        the same answer again changes nothing, another raises :class:`AlreadyAnsweredError`. No
        worker need be there: the run goes on as soon as one is."""
        self._require_started()
        run = self._resolve(run_id, session_id)
        run_in_thread(self._give_answer(self._blocking(), run, key, value))

    async def _give_answer(self, io: IO, run: str, key: str, value: Any) -> None:
        plan, _, id = key.partition(":")
        if not plan.isdigit() or not is_wait(id) or key not in await self._all_asked(io, run, plan):
            raise QuestionNotFoundError(run_id=run, key=key)
        data = self._types.codec.encode(value, "the answer")
        body = {"known": Known(id, outcome=Outcome("value", data)).pack()}
        if await self._answer(io, run, key, id, body):
            return
        stored = await io.get(record_key(run, key))
        first = None if stored is None else self._journal.decode(key, stored, key)
        if first is not None and first.body["known"]["outcome"]["value"] != data:
            raise AlreadyAnsweredError(run_id=run, key=key)

    async def _newest_plan(self, io: IO, run: str) -> str:
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

    async def _all_asked(self, io: IO, run: str, plan: str) -> dict[str, dict[str, Any]]:
        """The questions that a plan tells of, by key."""
        stored = await io.get(record_key(run, plan))
        if stored is None:
            return {}
        record = self._journal.decode(plan, stored, record_key(run, plan))
        if record.outcome["k"] != "plan":
            return {}
        asked = self._types.codec.decode(record.body["asked"], plan)
        return {f"{plan}:{id}": about for id, about in asked.items() if is_wait(id)}

    async def _questions(self, io: IO, run: str) -> list[PendingQuestion]:
        await self._spec_of(io, run)
        if await self._end_of(io, run) is not None:
            return []
        await self._telling.remind(io, run)
        open_keys = await self._open_questions(io, run)
        found: list[PendingQuestion] = []
        # Its workflow may not know yet of what it asked last, and will not without a worker.
        newest = await self._newest_plan(io, run)
        for plan in dict.fromkeys([*(key.partition(":")[0] for key in open_keys), newest]):
            for key, about in (await self._all_asked(io, run, plan)).items():
                is_open = key in open_keys or plan == newest
                if is_open and await io.get(record_key(run, key)) is None:
                    shown = {k: v for k, v in about.items() if k != "prompt"}
                    found.append(PendingQuestion(key, about["prompt"], shown))
        return found
