"""Crash tests for programs of your own: they are killed at every point of their runs.

``dapr-runners chaos -- python app.py`` prints what came of each crash, ``pytest --crash-test
app.py`` makes a test of each, and :class:`CrashTest` is what both are made of.
"""

from dapr_runners.testing._crash_test import Crash, CrashTest, KillPoint
from dapr_runners.testing._faults import FAULTS
from dapr_runners.testing._lives import Program
from dapr_runners.testing.errors import NoRunError, ProgramFailedError

__all__ = [
    "FAULTS",
    "Crash",
    "CrashTest",
    "KillPoint",
    "NoRunError",
    "Program",
    "ProgramFailedError",
]
