"""Results in a form that can be compared: JSON, with ids left out."""

import re
from typing import Any

from crewai import CrewOutput
from crewai.lite_agent_output import LiteAgentOutput
from pydantic import BaseModel

_IDS = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?<= at )0x[0-9a-f]+|(?<=created=)[0-9T:.-]+"
)


def show(value: Any) -> Any:
    """``value`` as lists and dicts of plain values, classes told apart."""
    match value:
        case CrewOutput():
            return {
                "raw": value.raw,
                "pydantic": show(value.pydantic),
                "json": show(value.json_dict),
                "tokens": show(value.token_usage),
                "tasks": [_show_task(each) for each in value.tasks_output],
            }
        case LiteAgentOutput():
            parts = ("raw", "pydantic", "agent_role", "usage_metrics", "messages")
            return {name: show(getattr(value, name)) for name in parts}
        case BaseException():
            return ["raised", type(value).__name__, without_ids(str(value))]
        case BaseModel():
            return {type(value).__name__: show(value.model_dump())}
        case dict():
            return {str(key): show(item) for key, item in value.items()}
        case list() | tuple():
            return [type(value).__name__, *(show(item) for item in value)]
        case None | bool() | int() | float():
            return value
        case _:
            return without_ids(value if isinstance(value, str) else repr(value))


def _show_task(output: Any) -> dict[str, Any]:
    parts = ("raw", "name", "summary", "agent", "pydantic", "json_dict", "output_format")
    return {
        **{name: show(getattr(output, name)) for name in parts},
        "messages": show(output.messages),
    }


def without_ids(text: str) -> str:
    """``text`` with ids, addresses and times, which are others in each run, replaced."""
    return _IDS.sub("<id>", text)
