"""Ids for new messages, given where they are written.

``add_messages`` gives them when it merges, in place: in one process, an event that was streamed
before then shows the id after all. Here the event has been stored by then, and the merge may be in
another process; so the ids come first, and events, records and state agree on them.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import functools
import uuid
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.graph.message import add_messages

from dapr_runners.langgraph import _private as lg


def give_message_ids(specs: Mapping[str, Any], writes: Any) -> None:
    """Give the messages in ``writes`` that have no id the one they will have in the state."""
    lg.ensure_message_ids(specs, writes)
    for channel, value in writes:
        if _adds_messages(getattr(specs.get(channel), "operator", None)):
            for message in value if isinstance(value, list) else [value]:
                if isinstance(message, BaseMessage) and message.id is None:
                    message.id = str(uuid.uuid4())


def _adds_messages(reducer: Any) -> bool:
    if isinstance(reducer, functools.partial):  # add_messages(format=...)
        names = [getattr(reducer.func, name, "") for name in ("__module__", "__name__")]
        return names == [add_messages.__module__, "add_messages"]
    return reducer is add_messages
