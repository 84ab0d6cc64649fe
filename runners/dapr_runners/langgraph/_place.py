"""Where in a step the code is that calls this."""

from typing import Any

from langgraph.runtime import get_runtime


def place() -> tuple[str, int]:
    """The task that runs, and which attempt at it this is: a graph called inside a node may run
    parts of it again."""
    try:
        runtime: Any = get_runtime()
    except (RuntimeError, KeyError):
        return "", 1  # outside of any task
    info = None if runtime is None else runtime.execution_info
    return ("", 1) if info is None else (info.task_id, info.node_attempt)
