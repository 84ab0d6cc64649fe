"""The questions that runs wait with, and their answers."""

from typing import Any

from dapr_runners.crewai._asked import Asked
from dapr_runners.crewai._sessions import SessionsRunner
from dapr_runners.crewai._types import Types
from dapr_runners.engine import Question, run_in_thread

PendingQuestion = Question
"""A question that a run waits with: ``key`` is for answer(), ``about`` says where it came up
(``crew``, ``task``, ``flow``, ``metadata``, as far as known)."""


class QuestionsRunner(SessionsRunner):
    """Tells what runs ask people, and takes the answers."""

    _types: Types

    @property
    def _asked(self) -> Asked:
        return Asked(lambda: self._types.codec, self._answers)

    def pending(
        self, session_id: str | None = None, *, run_id: str | None = None
    ) -> list[PendingQuestion]:
        """The questions that a run waits with, oldest first."""
        run = self._resolve(run_id, session_id)
        return run_in_thread(self._asked.open_in(self._blocking(), run))

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
        run_in_thread(self._asked.answer(self._blocking(), run, key, value))
