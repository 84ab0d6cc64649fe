"""What a parallel step wrote, for the saver, when the step is done.

LangGraph saves the writes of a task as soon as it is done, so that whoever looks at the thread, or
goes on with it after its run was given up, finds them while the rest of the superstep is under way.
A step is recorded before its superstep is committed, and its loop is shared with the others: the
saver gets its writes from a copy of the loop that commits nothing.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import copy
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._outbox import OutboxSaver


class _ToSaver:
    """Runs what a loop submits: it submits nothing but writes."""

    def __init__(self, saver: OutboxSaver) -> None:
        self._saver = saver

    def submit(self, _put: Any, *arguments: Any) -> None:
        self._saver.put_writes(*arguments)


def save_pending(loop: Any, task_id: str, writes: Any) -> bool:
    """Put what the task wrote into the outbox of the activity, if ``loop`` saves such writes;
    whether it does."""
    saver = loop.checkpointer
    if not isinstance(saver, OutboxSaver) or loop.durability == "exit":
        return False
    stand_in = copy.copy(loop)
    stand_in._submitter = _ToSaver(saver)
    stand_in._written_task_ids = set()
    stand_in.stream = None  # the step has streamed them
    # Nobody needs to wait: the writes are sent before the step counts as done.
    stand_in._delta_write_futs = stand_in._error_handler_write_futs = None
    lg.PregelLoop.put_writes(stand_in, task_id, writes)
    return True


@contextmanager
def saved_already(loop: Any, saved: bool) -> Generator[None]:
    """Within, ``loop`` does not save the writes it is given, if they were ``saved`` by their
    step."""
    put = loop.checkpointer_put_writes
    if saved:
        loop.checkpointer_put_writes = None
    try:
        yield
    finally:
        loop.checkpointer_put_writes = put
