"""What can go wrong with a command."""

from dataclasses import dataclass

from dapr_runners.errors import DaprRunnersError


@dataclass(eq=False)
class FrameworkMissingError(DaprRunnersError):
    """The run {run_id!r} is of {framework}, which this command needs and cannot import: {detail}.
    Install it beside dapr-runners: pip install 'dapr-runners[{framework}]'."""

    run_id: str
    framework: str
    detail: str
