"""Steps as a program asks for them and waits for them, and what takes it off that."""

import contextvars
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dapr_runners.crewai._outcomes import Known, Outcome
from dapr_runners.crewai._requests import Request


def is_wait(key: str) -> bool:
    """Whether the step ``key`` is a question to a person."""
    return key.partition("!")[2].startswith("human.")


class Unwound(BaseException):
    """The driver gives its program up. No Exception: CrewAI catches those everywhere."""


class Ending(BaseException):
    """``error`` ends the run, whatever CrewAI would make of it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


@dataclass(eq=False, slots=True)
class Pending:
    """A step that the program waits for."""

    key: str
    kind: str
    name: str
    request: Request
    asked: dict[str, Any]
    execute: Callable[[], Any]
    context: contextvars.Context
    wakes: Callable[[], None]
    hints: tuple[Any, ...] = ()
    limit: float | None = None
    """Seconds that it may take, if a time limit of CrewAI's counts."""
    outcome: Outcome | None = None
    executing: bool = False
    told_here: bool = False
    """Whether this program told of it: of one that it was asked for again, when it was driven here
    anew, others may have the outcome."""
    ran_here: bool = False

    def known(self) -> Known:
        return Known(self.key, self.request.digest, self.request.news(), self.outcome)


@dataclass(slots=True)
class Ask:
    """A step as the program asks for it. ``hints`` are classes or functions whose annotations name
    the classes its value may have; ``asked`` is plain data about it for people."""

    kind: str
    name: str
    head: Any
    messages: list[Any]
    execute: Callable[[], Any]
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    hints: tuple[Any, ...] = ()
    on_delivery: Callable[[Outcome], None] | None = None
    key: str | None = None
