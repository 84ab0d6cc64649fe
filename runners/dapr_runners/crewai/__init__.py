"""Run CrewAI agents, crews and flows on Dapr Workflow, unmodified."""

try:
    import crewai  # noqa: F401  # pyright: ignore[reportUnusedImport]
except ImportError as error:
    raise ImportError(
        "CrewAI is not installed. Install it with: pip install 'dapr-runners[crewai]'"
    ) from error

from dapr_runners.crewai import _install  # noqa: F401  # pyright: ignore[reportUnusedImport]
from dapr_runners.crewai._questions import PendingQuestion
from dapr_runners.crewai._retry import ToolRetry
from dapr_runners.crewai._runner import (
    DaprWorkflowAgentRunner,
    DaprWorkflowCrewRunner,
    DaprWorkflowFlowRunner,
)
from dapr_runners.crewai.errors import (
    AlreadyAnsweredError,
    CannotRebuildError,
    StepMismatchError,
    UnsupportedCrewAIError,
    UnsupportedCrewError,
)
from dapr_runners.engine import QuestionNotFoundError

__all__ = [
    "AlreadyAnsweredError",
    "CannotRebuildError",
    "DaprWorkflowAgentRunner",
    "DaprWorkflowCrewRunner",
    "DaprWorkflowFlowRunner",
    "PendingQuestion",
    "QuestionNotFoundError",
    "StepMismatchError",
    "ToolRetry",
    "UnsupportedCrewAIError",
    "UnsupportedCrewError",
]
