"""What a script kicks off: CrewAI's own object, or a runner. Each outcome is kept."""

import asyncio
import builtins
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from crewai.core.providers import human_input

from crew_corpus.show import show
from dapr_runners.engine import RunNotFoundError


class Probe(ABC):
    """Kicks off a case's crew, flow or agent, in turns or in a session of its own each."""

    def __init__(self) -> None:
        self.trace: list[Any] = []
        self.raised = False

    def kicks_off(self, inputs: Any = None) -> None:
        self._keep(lambda: self._kickoff(inputs))

    def akicks_off(self, inputs: Any = None) -> None:
        """The same on an event loop."""
        self._keep(lambda: asyncio.run(self._akickoff(inputs)))

    def kicks_off_for_each(self, inputs: list[Any]) -> None:
        # CrewAI's copies of a crew count tokens together, as they share their models.
        self._keep(lambda: [_without_tokens(each) for each in self._kickoff_for_each(inputs)])

    def says(self, message: str) -> None:
        """Kick off an agent by itself, with a message."""
        self._keep(lambda: self._message(message))

    def _keep(self, call: Callable[[], Any]) -> None:
        try:
            result = call()
        except Exception as error:
            self.raised = True
            self.trace.append(show(error))
        else:
            self.trace.append(show(result))

    @abstractmethod
    def _kickoff(self, inputs: Any) -> Any: ...

    @abstractmethod
    async def _akickoff(self, inputs: Any) -> Any: ...

    @abstractmethod
    def _kickoff_for_each(self, inputs: list[Any]) -> Any: ...

    @abstractmethod
    def _message(self, message: str) -> Any: ...


def _without_tokens(output: Any) -> dict[str, Any]:
    return {name: value for name, value in show(output).items() if name != "tokens"}


class PlainProbe(Probe):
    """CrewAI without a runner; ``make`` makes the object for each call anew."""

    def __init__(self, make: Callable[[], Any], answers: tuple[str, ...]) -> None:
        super().__init__()
        self._make = make
        self._answers = iter(answers)

    def _kickoff(self, inputs: Any) -> Any:
        with self._person():
            return self._make().kickoff(inputs=inputs)

    async def _akickoff(self, inputs: Any) -> Any:
        with self._person():
            return await self._make().akickoff(inputs=inputs)

    def _kickoff_for_each(self, inputs: list[Any]) -> Any:
        return self._make().kickoff_for_each(inputs)

    def _message(self, message: str) -> Any:
        return self._make().kickoff(message)

    @contextmanager
    def _person(self) -> Iterator[None]:
        async def line() -> str:
            return next(self._answers)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(builtins, "input", lambda *_: next(self._answers))
            patch.setattr(human_input, "_async_readline", line)  # it opens the standard input
            yield


class DurableProbe(Probe):
    """A runner. Each call has a session of its own."""

    def __init__(self, runner: Any, answers: tuple[str, ...]) -> None:
        super().__init__()
        self.steps: Counter[str] | None = None
        """How many steps of each kind are recorded, where that can be asked."""
        self._runner = runner
        self._answers = iter(answers)

    def _kickoff(self, inputs: Any) -> Any:
        name = uuid4().hex
        known = {"session_id": name, "run_id": name}
        try:
            return self._answered(name, lambda: self._runner.kickoff(inputs, **known))
        finally:
            self.steps = asyncio.run(self._recorded(inputs, known))

    async def _akickoff(self, inputs: Any) -> Any:
        name = uuid4().hex

        def kickoff() -> Any:
            return asyncio.run(self._runner.akickoff(inputs, session_id=name))

        return await asyncio.to_thread(self._answered, name, kickoff)

    def _kickoff_for_each(self, inputs: list[Any]) -> Any:
        return self._runner.kickoff_for_each(inputs, session_id=uuid4().hex)

    def _message(self, message: str) -> Any:
        return self._kickoff(message)

    async def _recorded(self, inputs: Any, known: dict[str, str]) -> Counter[str]:
        """The kinds of the recorded steps of a run that is over."""
        events = [event async for event in self._runner.run_async(inputs, **known)]
        assert all(event["replayed"] for event in events)
        done = [event for event in events if event["type"] in ("step_completed", "step_failed")]
        return Counter(event["kind"] for event in done)

    def _answered(self, session: str, kickoff: Callable[[], Any]) -> Any:
        """What ``kickoff`` gives, while the person answers what the run asks."""
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(kickoff)
            answered: set[str] = set()
            for answer in self._answers:
                key = self._question(session, answered, result)
                if key is None:
                    break
                self._runner.answer(session, key, answer)
                answered.add(key)
            return result.result()

    def _question(self, session: str, answered: set[str], result: Future[Any]) -> str | None:
        """The key of a question that is not answered, once there is one; None after the end."""
        while not result.done():
            try:
                asked = self._runner.pending(session)
            except RunNotFoundError:
                asked = []  # it is about to begin
            for question in asked:
                if question.key not in answered:
                    return question.key
            wait([result], timeout=0.01)
        return None
