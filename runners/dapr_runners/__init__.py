"""Durable runners for LangGraph graphs and CrewAI crews on Dapr Workflow."""

import os

from dapr_runners._current_step import CurrentStep, current_step
from dapr_runners._logs import StepFilter
from dapr_runners._progress import progress
from dapr_runners.errors import DaprRunnersError

__version__ = "0.1.0.dev0"

__all__ = [
    "CurrentStep",
    "DaprRunnersError",
    "StepFilter",
    "__version__",
    "current_step",
    "progress",
]

if "DAPR_RUNNERS_CRASH_TEST" in os.environ:  # a program under test: see dapr_runners.testing
    from dapr_runners.testing._agent import install

    install()
