"""Event listeners and callbacks see each event once, though a program is driven again over what is
recorded."""

from contextvars import ContextVar
from functools import partial
from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._chunks import listening
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._proxies import finished
from dapr_runners.crewai._strands import current_place

muted: ContextVar[bool] = ContextVar("dapr_runners_crewai_muted", default=False)
"""Set where a recorded method of a flow is passed over."""


def install() -> None:
    replace(crew.EventsBus, "emit", _emit)
    replace(crew.AgentExecutor, "_invoke_step_callback", _step_callback)
    replace(crew.Task, "_execute_core", _task_callbacks)
    replace(crew.Task, "_aexecute_core", _task_callbacks)


def _emit(original: Any) -> Any:
    def call(self: Any, source: Any, event: Any) -> Any:
        place = current_place()
        if muted.get() or (place is not None and place.driver.is_replaying(place.strand)):
            self._prepare_event(source, event)  # what follows in its scope refers to it
            return None
        if (heard := listening.get()) is not None and isinstance(event, crew.LLMStreamChunkEvent):
            heard[0].said(heard[1], event.chunk)
        if place is not None and isinstance(event, crew.TaskStartedEvent):
            place.driver.on_unwinding.append(partial(crew.forget_task, source))
        return original(self, source, event)

    return call


class Once:
    """A callback of the user's, called once in a run. It is equal to what it wraps: CrewAI compares
    the callback of a task with that of its crew."""

    def __init__(self, callback: Any) -> None:
        self.callback = callback

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        place = current_place()
        if place is None:
            finished(self.callback(*args, **kwargs))
            return
        place.driver.note(place, "callback", lambda: _no_value(self.callback(*args, **kwargs)))

    def __eq__(self, other: object) -> bool:
        return self.callback == (other.callback if isinstance(other, Once) else other)

    def __hash__(self) -> int:
        return hash(self.callback)


def _no_value(result: Any) -> None:
    finished(result)


def call_once(owner: Any, name: str) -> None:
    """Let the callback ``owner.name``, if there is one, be called once in a run. ``owner`` belongs
    to a driven run."""
    callback = getattr(owner, name, None)
    if callback is not None and not isinstance(callback, Once):
        owner.__dict__[name] = Once(callback)


def _step_callback(original: Any) -> Any:
    def call(self: Any, answer: Any) -> Any:
        if current_place() is not None:
            call_once(self, "step_callback")
        return original(self, answer)

    return call


def _task_callbacks(original: Any) -> Any:
    # Not asynchronous itself: what the original returns is passed on.
    def call(self: Any, agent: Any, context: Any, tools: Any) -> Any:
        if current_place() is not None:
            call_once(self, "callback")
            of_crew = getattr(agent or self.agent, "crew", None)
            if isinstance(of_crew, crew.Crew):
                call_once(of_crew, "task_callback")
        return original(self, agent, context, tools)

    return call
