"""Answers that a run may not have been told of, listed under one key of the runner; and runs that
were cancelled or purged, whose workflow may not have been.

An answer is listed before it is recorded, and taken off when the workflow has its event. So one
that was given while no worker was there, or by a process that died right after, is found by whoever
starts to work, and the run goes on by itself.
"""

import logging
import threading
from collections.abc import Callable

from dapr_runners.engine._keys import untold_key
from dapr_runners.engine._listed import Listed
from dapr_runners.state import SidecarUnreachableError

logger = logging.getLogger("dapr_runners")

_FIRST_LOOK, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two looks at the list, in processes that have the runner."""


TERMINATE, PURGE = "!terminate", "!purge"
"""Listed in place of the record key of an answer: what a workflow is to be told otherwise."""
START = "!start/"
"""Before the mode of a run: listed where no worker was there to start its workflow."""


class Untold(Listed):
    """The list of one runner: runs, with the record keys of their answers."""

    def __init__(self, runner: str) -> None:
        super().__init__(untold_key(runner))


class Lookout:
    """Calls ``look`` now and again, in a thread of its own, soon after :meth:`begin`: for as long
    as it says that it has found something, if ``for_good`` is false."""

    def __init__(self, look: Callable[[], bool], for_good: bool) -> None:
        self._look = look
        self._for_good = for_good
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin, unless it has."""
        if self._thread is None:
            self._over = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._over,), name="dapr-runners-untold", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """End, and wait for a look that is under way, though not long."""
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(2.0)

    def _run(self, over: threading.Event) -> None:
        pause = _FIRST_LOOK
        while not over.wait(pause):
            pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                if not self._look() and not self._for_good:
                    return
            except SidecarUnreachableError as error:
                logger.debug("looking for answers: %s", error)
            except Exception as error:
                # The next look may go well, and who waits for the run is not here to be told.
                logger.warning("looking for answers: %s", error)
