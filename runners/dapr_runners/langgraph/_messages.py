"""Which of the messages that a step's nodes noted are recorded with it."""

from typing import cast

from dapr_runners._current_step import CurrentStep, messages_of
from dapr_runners.effects import Notes
from dapr_runners.engine import Produced
from dapr_runners.langgraph._outbox import saved_tasks
from dapr_runners.langgraph._route import Route
from dapr_runners.state import UnstorableValueError


def notes_of(step: CurrentStep | None) -> Notes | None:
    """The messages of ``step``."""
    return cast("Notes | None", messages_of(step))


def with_messages(
    produced: Produced,
    route: Route,
    error: BaseException | None = None,
    *,
    must_plan: bool = False,
) -> Produced:
    """``produced`` of the activity of ``route``, with its messages. ``error`` is what its loop
    ended with; ``must_plan`` says that it was to be a plan, unless that could not be stored."""
    if route.notes is None or produced.outcome["k"] == "retry":
        return produced
    result = None if produced.held is None else produced.held.result
    error = error or (None if result is None else result.error)
    refused = isinstance(error, UnstorableValueError) or (
        must_plan and produced.outcome["k"] != "plan"
    )
    if not refused:  # what is not stored did not happen
        produced.messages = route.notes.made(saved_tasks(route.box))
    return produced
