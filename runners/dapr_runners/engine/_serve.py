"""Being a worker until a signal comes, and leaving without cutting what is being done."""

import signal
from collections.abc import Callable
from typing import Protocol

from dapr_runners._signals import caught
from dapr_runners.engine._worker import Worker

GRACE_SECONDS = 25.0
"""Kubernetes gives a container five more to end."""
_PAUSE = 0.05


class Served(Protocol):
    """A runner, as far as serving it goes."""

    def start(self) -> None: ...
    def shutdown(self) -> None: ...
    @property
    def worker(self) -> Worker: ...


def serve(*runners: Served, grace: float = GRACE_SECONDS) -> None:
    """Start ``runners``, work until SIGTERM or SIGINT comes, and stop them.

    After the signal no step is begun any more, and those in flight have ``grace`` seconds to end:
    what is cut then runs again elsewhere. A second signal cuts them at once. Steps that the sidecar
    gives out meanwhile wait: they go to other workers when this one is gone. To be called in the
    main thread of the program, else ValueError.
    """
    with caught(signal.SIGINT, signal.SIGTERM) as signals:

        def told(seconds: float | None = None) -> bool:
            return signals.next(seconds) is not None

        try:
            if not _start(runners, told):
                told()
            drain({runner.worker for runner in runners}, grace, told)
        finally:
            for runner in runners:
                runner.shutdown()


def _start(runners: tuple[Served, ...], told: Callable[[float], bool]) -> bool:
    """Start ``runners``, until one is told to stop: whether one was."""
    for runner in runners:
        runner.start()
        if told(0):
            return True
    return False


def drain(workers: set[Worker], grace: float, wait: Callable[[float], bool]) -> None:
    """Let ``workers`` end what they are at, for up to ``grace`` seconds. ``wait`` waits that long,
    or says at once that there is no time left."""
    for worker in workers:
        worker.hold()
    quiet = 0
    for _ in range(round(grace / _PAUSE)):
        quiet = 0 if any(worker.busy for worker in workers) else quiet + 1
        # Twice: what has just ended is being told of.
        if quiet == 2 or wait(_PAUSE):
            return
