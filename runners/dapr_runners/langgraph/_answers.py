"""What chat models have answered in a step that is not recorded yet.

A node that asks a model three times and dies in between must not pay for the first answers again.
LangChain asks its global cache before it asks a model, and tells it of each answer: that is where
they are recorded, by step and by what was asked. The user's own cache, if there is one, stays
behind this one and sees all that is asked for the first time.

An attempt finds the answers of those that were lost with their worker. What was asked in one that
failed is asked again, as without the runner: a node that could not use an answer needs another.
"""

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from langchain_core.caches import BaseCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, Generation

from dapr_runners._current_step import effects_of, running_step
from dapr_runners.effects import Effects
from dapr_runners.engine import IO, BlockingIO, LoopIO, answer_key, answers_in, run_in_thread
from dapr_runners.state import UnstorableValueError

logger = logging.getLogger("dapr_runners")
Asked: TypeAlias = tuple[str, int]
"""What was asked, and how often it was by then in its attempt."""
_asked_as: ContextVar[Asked | None] = ContextVar("dapr_runners_asked_as", default=None)


class _Recorded(ChatGeneration):
    """An answer as it was recorded: LangChain would note on a cached one that it cost nothing."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "message" and _costs_nothing(value, self.message):
            return
        super().__setattr__(name, value)


def _costs_nothing(changed: Any, message: Any) -> bool:
    usage: Any = getattr(message, "usage_metadata", None) or {}
    return getattr(changed, "usage_metadata", None) == {**usage, "total_cost": 0}


@dataclass(slots=True)
class _Answers:
    """Those of a step, from the attempts before this one, by what was asked and how often before
    that in the attempt."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: Counter[str] = field(default_factory=Counter[str])
    found: dict[Asked, Any] | None = None
    next_number: int = 0

    def count(self, asked: str) -> Asked:
        """Name what is asked now. Parallel calls are told apart by the order in which they ask,
        not by that in which they are answered."""
        with self.lock:
            self.asked[asked] += 1
            return asked, self.asked[asked]

    async def load(self, effects: Effects, io: IO) -> None:
        if self.found is not None:
            return
        found: dict[Asked, Any] = {}
        number = -1
        async for number, data in answers_in(effects.run, effects.whole, io):
            key = answer_key(effects.run, effects.whole, number)
            asked, answer = cast("tuple[Asked, Any]", effects.host.codec.decode(data, key))
            found.setdefault(asked, answer)
        with self.lock:
            if self.found is None:
                self.found, self.next_number = found, number + 1

    async def add(self, asked: Asked, answer: list[Any], effects: Effects, io: IO) -> None:
        try:
            data = effects.host.codec.encode((asked, answer), "the answer of a model")
        except UnstorableValueError as error:
            logger.warning("%s asks again if its worker is lost: %s", effects.name, error)
            return
        while True:
            with self.lock:
                number = self.next_number
                self.next_number += 1
            if await io.create(answer_key(effects.run, effects.whole, number), data):
                return


class StepAnswers(BaseCache):
    """LangChain's global cache in a process that works, in front of the user's (``behind``)."""

    def __init__(self, behind: BaseCache | None) -> None:
        self.behind = behind
        self._of_steps: WeakKeyDictionary[Effects, _Answers] = WeakKeyDictionary()
        self._lock = threading.Lock()

    # -- LangChain's side

    def lookup(self, prompt: str, llm_string: str) -> Sequence[Generation] | None:
        effects = _recording()
        if effects is not None:
            io = effects.host.io(BlockingIO)
            if (found := run_in_thread(self._find(effects, prompt, llm_string, io))) is not None:
                return found
        return None if self.behind is None else self.behind.lookup(prompt, llm_string)

    async def alookup(self, prompt: str, llm_string: str) -> Sequence[Generation] | None:
        effects = _recording()
        if effects is not None:
            io = effects.host.io(LoopIO)
            if (found := await self._find(effects, prompt, llm_string, io)) is not None:
                return found
        return None if self.behind is None else await self.behind.alookup(prompt, llm_string)

    def update(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        effects = _recording()
        if effects is not None:
            io = effects.host.io(BlockingIO)
            run_in_thread(self._add(effects, prompt, llm_string, return_val, io))
        if self.behind is not None:
            self.behind.update(prompt, llm_string, return_val)

    async def aupdate(self, prompt: str, llm_string: str, return_val: Sequence[Generation]) -> None:
        effects = _recording()
        if effects is not None:
            io = effects.host.io(LoopIO)
            await self._add(effects, prompt, llm_string, return_val, io)
        if self.behind is not None:
            await self.behind.aupdate(prompt, llm_string, return_val)

    def clear(self, **kwargs: Any) -> None:
        if self.behind is not None:
            self.behind.clear(**kwargs)

    # -- a step's answers

    def _of(self, effects: Effects) -> _Answers:
        with self._lock:
            return self._of_steps.setdefault(effects, _Answers())

    async def _find(
        self, effects: Effects, prompt: str, llm_string: str, io: IO
    ) -> list[Generation] | None:
        answers = self._of(effects)
        asked = answers.count(_asked(effects, prompt, llm_string))
        # LangChain tells of the answer in the same thread, or task, in which it has asked.
        _asked_as.set(asked)
        await answers.load(effects, io)
        found = (answers.found or {}).get(asked)
        return None if found is None else [_thawed(each) for each in found]

    async def _add(
        self, effects: Effects, prompt: str, llm_string: str, given: Sequence[Generation], io: IO
    ) -> None:
        asked = _asked_as.get()
        if asked is None or asked[0] != _asked(effects, prompt, llm_string):
            return  # it was not asked here
        answer = [_frozen(each) for each in given]
        await self._of(effects).add(asked, answer, effects, io)


def is_recorded_answer(generation: Generation) -> bool:
    """Whether it is an answer that an attempt before this one was given."""
    return isinstance(generation, _Recorded)


def record_answers() -> None:
    """From now on, LangChain's global cache is one that records, in front of the one there is."""
    there = get_llm_cache()
    if not isinstance(there, StepAnswers):
        set_llm_cache(StepAnswers(there))


def leave_answers() -> None:
    """End of :func:`record_answers`. A runner that still works begins anew with its next step."""
    there = get_llm_cache()
    if isinstance(there, StepAnswers):
        set_llm_cache(there.behind)


def _recording() -> Effects | None:
    effects = cast("Effects | None", effects_of(running_step.get()))
    return effects if effects is not None and effects.host.records_answers else None


def _asked(effects: Effects, prompt: str, llm_string: str) -> str:
    """Names a request in its step, among attempts that follow the same failed ones."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (effects.step, str(effects.order_now()), prompt, llm_string):
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()


def _frozen(generation: Generation) -> tuple[BaseMessage | str, dict[str, Any] | None]:
    said = generation.message if isinstance(generation, ChatGeneration) else generation.text
    return said, generation.generation_info


def _thawed(frozen: tuple[BaseMessage | str, dict[str, Any] | None]) -> Generation:
    said, info = frozen
    if isinstance(said, str):
        return Generation(text=said, generation_info=info)
    return _Recorded(message=said, generation_info=info)
