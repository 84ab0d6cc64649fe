"""What a step made, as plain data."""

from typing import Any

from dapr_runners.langgraph._parking import StepResult
from dapr_runners.langgraph._parts import PartReader, PartWriter
from dapr_runners.langgraph._snapshot import freeze_writes, thaw_writes


def freeze_result(result: StepResult, parts: PartWriter, node: str) -> dict[str, Any]:
    """``result`` with its values by reference."""
    where = f"node {node!r}"
    return {
        "id": result.id,
        "writes": freeze_writes(result.writes, parts, where),
        "error": None if result.error is None else parts.put(result.error, where),
        "handles": result.handles,
        "handled_error": (
            None if result.handled_error is None else parts.put(result.handled_error, where)
        ),
        "visited": result.visited,
        "pushed": {
            task: freeze_writes(writes, parts, where) for task, writes in result.pushed.items()
        },
        "saved": result.saved,
    }


def thaw_result(frozen: dict[str, Any], parts: PartReader) -> StepResult:
    """The reverse of :func:`freeze_result`."""
    error, handled = frozen["error"], frozen["handled_error"]
    return StepResult(
        id=frozen["id"],
        writes=thaw_writes(frozen["writes"], parts),
        error=None if error is None else parts.get(error, "an error"),
        handles=frozen["handles"],
        handled_error=None if handled is None else parts.get(handled, "an error"),
        visited=frozen["visited"],
        pushed={task: thaw_writes(writes, parts) for task, writes in frozen["pushed"].items()},
        saved=frozen.get("saved", False),  # records of the first releases have none
    )
