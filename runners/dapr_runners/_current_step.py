"""The step that runs right now, for the code inside it to read."""

import hashlib
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may carry out an effect: ``owner`` (a process), until ``expiration`` (seconds since the
    epoch) unless it is renewed. ``fencing_token`` is higher than that of any lease before it."""

    owner: str
    expiration: float
    fencing_token: int


class StepEffects(Protocol):
    """The effects of a step, as kept by ``dapr_runners.effects``."""

    def check(self) -> None:
        """Raise what one of them has stopped the step with, if its code has swallowed that."""
        ...

    def new_pass(self) -> None:
        """The code of the step begins, for the first time or again."""
        ...

    def inside(self, key: str) -> "StepEffects":
        """The effects of a part of the step that is recorded for itself."""
        ...


class StepMessages(Protocol):
    """The messages of a step, as kept by ``dapr_runners.effects``."""

    def inside(self, name: str, around: Any) -> "StepMessages":
        """Those of a part of the step that is recorded for itself, and called by ``around``."""
        ...

    def new_pass(self) -> None:
        """The code of the step begins, for the first time or again."""
        ...

    def complete(self) -> None:
        """The code of the step has returned."""
        ...

    def note(self, message: dict[str, Any]) -> str:
        """Note a message; its id."""
        ...


class StepAttempt(Protocol):
    """An attempt at a step, watched (see ``dapr_runners.engine``)."""

    def current(self) -> AbstractContextManager[Any]:
        """Within, what code tells is told of this attempt."""
        ...


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """A step: ``run_id`` of its run, ``key`` inside the run, ``attempt`` from 1, the
    ``tenant_id`` that its run was called with, or "", and the ``name`` that people know it by."""

    run_id: str
    key: str
    attempt: int
    tenant_id: str = ""
    _effects: StepEffects | None = field(default=None, repr=False, compare=False)
    _messages: StepMessages | None = field(default=None, repr=False, compare=False)
    name: str = field(default="", compare=False)
    _watched: StepAttempt | None = field(default=None, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this step, and for no other step (32 hex digits). Give it
        to the service that an effect goes to, so that a repeated attempt is known there."""
        parts = f"{self.run_id}\0{self.key}".encode()
        return hashlib.blake2b(parts, digest_size=16).hexdigest()

    @property
    def lease(self) -> Lease | None:
        """The lease under which the effect that calls this is carried out; None outside of one."""
        return running_lease.get()

    def inside(self, key: str) -> "CurrentStep":
        """A part of this step that is recorded for itself."""
        whole = f"{self.key}/{key}"
        effects = None if self._effects is None else self._effects.inside(whole)
        messages = self._messages
        if messages is not None:
            messages = messages.inside(key, messages_of(running_step.get()))
        return CurrentStep(
            self.run_id, whole, self.attempt, self.tenant_id,
            effects, messages, self.name, self._watched,
        )  # fmt: skip


class Program(Protocol):
    """Code that is driven again over what is recorded. What it does to the outside is a step."""

    def call(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call ``function`` as a step of its own, which goes by ``name``."""
        ...

    async def acall(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Twin of :meth:`call`."""
        ...


running_program: ContextVar[Program | None] = ContextVar("dapr_runners_program", default=None)
running_step: ContextVar[CurrentStep | None] = ContextVar("dapr_runners_step", default=None)
running_lease: ContextVar[Lease | None] = ContextVar("dapr_runners_lease", default=None)


@contextmanager
def running(step: CurrentStep | None) -> Generator[None]:
    """Within, ``step`` is the one that runs."""
    token = running_step.set(step)
    try:
        if step is None or step._watched is None:  # pyright: ignore[reportPrivateUsage]
            yield
        else:
            with step._watched.current():  # pyright: ignore[reportPrivateUsage]
                yield
    finally:
        running_step.reset(token)
        if (effects := effects_of(step)) is not None:
            effects.check()


def effects_of(step: CurrentStep | None) -> StepEffects | None:
    """The effects of ``step``."""
    return None if step is None else step._effects  # pyright: ignore[reportPrivateUsage]


def attempt_of(step: CurrentStep | None) -> StepAttempt | None:
    """The attempt at ``step`` that is watched."""
    return None if step is None else step._watched  # pyright: ignore[reportPrivateUsage]


def messages_of(step: CurrentStep | None) -> StepMessages | None:
    """The messages of ``step``."""
    return None if step is None else step._messages  # pyright: ignore[reportPrivateUsage]


def current_step() -> CurrentStep | None:
    """The recorded step whose code calls this; None outside of one."""
    return running_step.get()
