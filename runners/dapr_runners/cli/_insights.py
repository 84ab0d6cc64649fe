"""What knows the framework of a run."""

from importlib import import_module
from typing import TYPE_CHECKING

from dapr_runners.cli._errors import FrameworkMissingError

if TYPE_CHECKING:
    from dapr_runners.engine import Insight, Overview

_INSIGHTS = {"langgraph": "GraphInsight", "crewai": "CrewInsight"}


async def insight_into(runs: "Overview", run: str) -> "Insight":
    """What knows the framework of ``run``."""
    spec = await runs.spec(run)
    # Runs of the first releases do not say whose they are.
    name = spec.get("framework") or ("crewai" if "how" in spec else "langgraph")
    try:
        module = import_module(f"dapr_runners.{name}._insight")
    except ImportError as error:
        raise FrameworkMissingError(run_id=run, framework=name, detail=str(error)) from error
    return getattr(module, _INSIGHTS[name])()
