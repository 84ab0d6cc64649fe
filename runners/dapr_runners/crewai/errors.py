"""What can go wrong between this package and CrewAI."""

from dataclasses import dataclass
from typing import ClassVar

from dapr_runners.errors import DaprRunnersError, ErrorCategory


@dataclass(eq=False)
class UnsupportedCrewAIError(DaprRunnersError):
    """CrewAI {version} lacks something the runner needs ({symbol}), so it could not run a crew
    exactly. Install a tested version: pip install 'dapr-runners[crewai]'."""

    version: str
    symbol: str


@dataclass(eq=False)
class UnsupportedCrewError(DaprRunnersError):
    """The runner {runner!r} cannot run this exactly: {reason}. Nothing was run. {remedy}"""

    runner: str
    reason: str
    remedy: str


@dataclass(eq=False)
class CannotRebuildError(DaprRunnersError):
    """The runner {runner!r} was given a ready {kind} that it could not build a second time:
    {reason}. A run that goes on in another process needs that. Pass a function instead that builds
    it: def build(inputs): return {kind}(...)."""

    runner: str
    kind: str
    reason: str


@dataclass(eq=False)
class StepMismatchError(DaprRunnersError):
    """The run {run_id!r} recorded another request for step {step!r} than the program makes now, so
    what it recorded may not fit. The code or its configuration changed while the run was under way,
    or it is not deterministic between steps (random values, clocks). What changed:
    {diff}
    Go on with the program the run was started with, or start the run anew; with
    on_mismatch="accept" the runner takes the recorded outcome and logs this."""

    run_id: str
    step: str
    diff: str


@dataclass(eq=False)
class AlreadyAnsweredError(DaprRunnersError):
    """The question {key!r} of run {run_id!r} was answered before, with another answer, and the
    first counts. Nothing was changed."""

    category: ClassVar[ErrorCategory] = "refused"

    run_id: str
    key: str
