"""The step that runs right now, for the code inside it to read."""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """A step: ``run_id`` of its run, ``key`` inside the run, ``attempt`` from 1."""

    run_id: str
    key: str
    attempt: int

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at this step, and for no other step (32 hex digits). Give it
        to the service that an effect goes to, so that a repeated attempt is known there."""
        parts = f"{self.run_id}\0{self.key}".encode()
        return hashlib.blake2b(parts, digest_size=16).hexdigest()


running_step: ContextVar[CurrentStep | None] = ContextVar("dapr_runners_step", default=None)


@contextmanager
def running(step: CurrentStep | None) -> Generator[None]:
    """Within, ``step`` is the one that runs."""
    token = running_step.set(step)
    try:
        yield
    finally:
        running_step.reset(token)


def current_step() -> CurrentStep | None:
    """The recorded step whose code calls this; None outside of one."""
    return running_step.get()
