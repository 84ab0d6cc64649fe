"""Values and states in a form that can be compared: types told apart, ids and times left out."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Interrupt, StateSnapshot
from pydantic import BaseModel

_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b")


def show(value: Any) -> Any:
    """``value`` as nested lists, tuples and dicts of strings."""
    match value:
        case Interrupt():
            return ("Interrupt", show(value.value))
        case BaseException():
            return ("raised", type(value).__name__, without_ids(str(value)).split("\n")[0])
        case BaseMessage():
            return (
                type(value).__name__,
                show(value.content),
                show(getattr(value, "tool_calls", None)),
            )
        case BaseModel():
            fields = type(value).model_fields
            return (type(value).__name__, {name: show(getattr(value, name)) for name in fields})
        case dict():
            shown = {show_key(key): show(item) for key, item in value.items()}
            if "__interrupt__" in value:
                shown["__interrupt__"] = in_any_order(value["__interrupt__"])
            return shown if type(value) is dict else (type(value).__name__, shown)
        case list():
            return [show(item) for item in value]
        case tuple():
            shown_items = tuple(show(item) for item in value)
            return shown_items if type(value) is tuple else (type(value).__name__, *shown_items)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [field.name for field in dataclasses.fields(value)]
            return (type(value).__name__, {name: show(getattr(value, name)) for name in fields})
        case _:
            return without_ids(repr(value))


def show_key(key: Any) -> str:
    """A dict's key: a string is told apart from others."""
    return without_ids(key if isinstance(key, str) else repr(key))


def without_ids(text: str) -> str:
    """``text`` with what is another one in each run replaced."""
    return _IDS.sub("<id>", text)


def in_any_order(values: Any) -> list[Any]:
    """The shown ``values``, where their order means nothing."""
    return sorted((show(value) for value in values), key=repr)


def show_state(state: StateSnapshot) -> dict[str, Any]:
    """A state, but for its ids and times."""
    return {
        "values": show(state.values),
        "next": sorted(state.next),
        "interrupts": in_any_order(state.interrupts),
        "metadata": _metadata(state),
        "tasks": sorted(
            (
                (task.name, in_any_order(task.interrupts), show(task.error), show(task.result))
                for task in state.tasks
            ),
            key=repr,
        ),
    }


def show_history(history: Sequence[StateSnapshot]) -> list[dict[str, Any]]:
    """States from the newest to the oldest, each with the place of its parent among them."""
    places = {_id(state.config): place for place, state in enumerate(history)}

    def parent(state: StateSnapshot) -> int | None:
        return None if state.parent_config is None else places.get(_id(state.parent_config))

    return [{**show_state(state), "parent": parent(state)} for state in history]


def _id(config: Any) -> str:
    return config["configurable"]["checkpoint_id"]


def _metadata(state: StateSnapshot) -> Any:
    metadata = {key: value for key, value in (state.metadata or {}).items() if key != "run_id"}
    return show(metadata)
