"""What can go wrong with a crash test, other than what it tests."""

from dataclasses import dataclass

from dapr_runners.errors import DaprRunnersError


@dataclass(eq=False)
class ProgramFailedError(DaprRunnersError):
    """Undisturbed, the program {command!r} {how}, so there is nothing to compare a crash with. Make
    it end by itself with exit code 0, without a crash test, beside a sidecar of its own. It wrote:
    {output}"""

    command: str
    how: str
    output: str


@dataclass(eq=False)
class NoRunError(DaprRunnersError):
    """The program {command!r} ended, and no runner of dapr-runners ran anything in it, so there is
    no point to kill it at. Name the program that makes the runner and calls it."""

    command: str
