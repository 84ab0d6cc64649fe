"""What watches the work of this process, for traces and metrics: nothing, unless it is switched on.

The engine and the frameworks' adapters tell it what happens; they know nothing of how it is told on
(see ``dapr_runners.telemetry``). Off, it costs them a look at :attr:`Watching.watcher`.
"""

import functools
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from dapr_runners.engine._work import Work

T = TypeVar("T")


class Call(Protocol):
    """A call of a model or of a tool, which has begun."""

    def answered(self, answer: dict[str, Any], content: Callable[[], Any]) -> None:
        """It has ended. ``answer`` may have ``input_tokens``, ``output_tokens``, ``model``, ``id``
        and ``finish_reasons``; ``content``, called if content is captured, is what was said."""
        ...

    def failed(self, error: BaseException) -> None:
        """It has raised ``error``."""
        ...

    def forgotten(self) -> None:
        """It was none: what it gives was recorded before."""
        ...


class Attempt(Protocol):
    """An attempt at a step, which has begun."""

    def current(self) -> AbstractContextManager[Any]:
        """Within, what the user's code tells is told of this attempt."""
        ...

    def ended(self, error: BaseException | None = None) -> None:
        """Its code has ended. Only the first time counts."""
        ...

    def chat(self, request: dict[str, Any], content: Callable[[], Any]) -> Call:
        """It calls a model. ``request`` may have ``model``, ``provider``, ``temperature``,
        ``max_tokens`` and ``agent``."""
        ...

    def tool(self, tool: dict[str, Any], content: Callable[[], Any]) -> Call:
        """It calls a tool. ``tool`` has a ``name``, and may have ``call_id`` and
        ``description``."""
        ...


class Watch(Protocol):
    """What is told of one item of a run."""

    @property
    def attempt_id(self) -> str:
        """Names the attempt at it, also for whoever finds that its worker was lost."""
        ...

    def lost(self, number: int, began: float, attempt_id: str | None, identity: str | None) -> None:
        """An attempt before this one did not come back: of which the mark names ``attempt_id``, or
        which the process ``identity`` went on to when it had made the plan."""
        ...

    def begin(self, task: str, key: str, name: str) -> Attempt:
        """An attempt at the step ``task``, which people know by its ``key`` and ``name``."""
        ...

    async def within_run(self, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine; what the user's code tells in it is told of the run."""
        ...

    def driving(self, is_replaying: Callable[[], bool]) -> None:
        """From now on, what the user's code tells in this context is told of the run, unless it
        was told before."""
        ...

    def performed(self, outcome: dict[str, Any] | None, error: BaseException | None) -> None:
        """The work is over: it made ``outcome``, or raised ``error``."""
        ...

    def recorded(self, outcome: dict[str, Any], size: int) -> None:
        """What it made is durable, in a record of ``size`` bytes."""
        ...

    def inner_ended(self, outcome: dict[str, Any], began: float) -> None:
        """With it, the step around its lane is over, which began when the lane did."""
        ...


class Watcher(Protocol):
    """Watches all runs of this process."""

    def scheduling(self, runner: str) -> dict[str, Any]:
        """A run is about to be scheduled here: what each of its items is to hold for the others
        that watch it. Small and plain."""
        ...

    def watch(self, runner: str, work: "Work", identity: str | None) -> Watch:
        """Work begins; in the process ``identity``, if that had made its plan and goes on."""
        ...

    def ended(
        self, runner: str, item: dict[str, Any], status: str, about: dict[str, Any], at: float
    ) -> None:
        """A run has ended. Its ``item`` need only have ``run`` and what is in every item."""
        ...

    def answered(self, runner: str, item: dict[str, Any], name: str, asked: float | None) -> None:
        """The step ``item["task"]``, which waited for a person, was answered."""
        ...

    def unknown_effect(self, effect: str) -> None:
        """It was found that nobody knows whether an effect has happened."""
        ...


@dataclass(slots=True)
class Watching:
    """What watches."""

    watcher: Watcher | None = None


@functools.cache
def watching() -> Watching:
    """That of this process."""
    return Watching()
