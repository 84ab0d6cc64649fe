"""Run LangGraph graphs on Dapr Workflow, unmodified."""

try:
    import langgraph.pregel  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as error:
    raise ImportError(
        "LangGraph is not installed. Install it with: pip install 'dapr-runners[langgraph]'"
    ) from error

from dapr_runners.langgraph._retry import StepRetry
from dapr_runners.langgraph._runner import DaprWorkflowGraphRunner
from dapr_runners.langgraph._saver import DaprSaver
from dapr_runners.langgraph.errors import (
    GraphChangedError,
    StreamModeNotRecordedError,
    UnsupportedGraphError,
    UnsupportedLangGraphError,
)

__all__ = [
    "DaprSaver",
    "DaprWorkflowGraphRunner",
    "GraphChangedError",
    "StepRetry",
    "StreamModeNotRecordedError",
    "UnsupportedGraphError",
    "UnsupportedLangGraphError",
]
