"""What a framework adds to an overview: the events of its runs, what they ask, and the answers."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Protocol

from dapr_runners.engine._overview import Overview
from dapr_runners.engine._work import Json


@dataclass(frozen=True, slots=True)
class Question:
    """What a run asks a person: ``key`` names it for the answer, ``about`` says where it came up.
    ``prompt`` is a text, or any value."""

    key: str
    prompt: Any
    about: Json


class Insight(Protocol):
    """One framework's."""

    answers_are_texts: bool
    """Whether an answer is always a text."""

    def events(
        self, runs: Overview, run: str, *, after: str | None = None, follow: bool = True
    ) -> AsyncIterator[Json]:
        """The events of ``run`` as the runner's ``run_async`` gives them, to its end or, without
        ``follow``, as far as it is; those that follow the one with the id ``after``, if given."""
        ...

    async def questions(self, runs: Overview, run: str) -> list[Question]:
        """What ``run`` asks, oldest first."""
        ...

    async def answer(self, runs: Overview, run: str, key: str, value: Any) -> str:
        """Answer the question ``key`` of ``run``. The id of the run that goes on with it."""
        ...

    async def retry_from(self, runs: Overview, run: str, step: str, again: bool) -> str:
        """Start a run that does the step ``step`` of ``run``, which has ended, again, and what
        follows it; the steps before it are not done again. The id of the new run. With ``again``,
        even if what that does has effects that have happened. Raises :class:`RetryRefusedError`."""
        ...
