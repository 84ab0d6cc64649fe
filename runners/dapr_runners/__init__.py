"""Durable runners for LangGraph graphs and CrewAI crews on Dapr Workflow."""

from dapr_runners._current_step import CurrentStep, current_step
from dapr_runners.errors import DaprRunnersError

__version__ = "0.1.0.dev0"

__all__ = ["CurrentStep", "DaprRunnersError", "__version__", "current_step"]
