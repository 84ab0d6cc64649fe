"""Answers that a run may not have been told of, listed under one key of the runner; runs that were
cancelled or purged, whose workflow may not have been; and those that no worker was there to start.

An answer is listed before it is recorded, and taken off when the workflow has its event. So one
that was given while no worker was there, or by a process that died right after, is found by whoever
starts to work, and the run goes on by itself.
"""

import logging
import threading
from collections.abc import Callable, Iterator

from dapr_runners.engine._keys import untold_key
from dapr_runners.engine._listed import Listed
from dapr_runners.engine._rounds import Rounds
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


class Lookout(Rounds):
    """Calls ``look`` now and again, soon after :meth:`begin`: for as long as it says that it has
    found something, if ``for_good`` is false."""

    def __init__(self, look: Callable[[], bool], for_good: bool) -> None:
        def look_again(_over: threading.Event) -> bool:
            try:
                return look() or for_good
            except SidecarUnreachableError as error:
                logger.debug("looking for answers: %s", error)
            except Exception as error:
                # The next look may go well, and who waits for the run is not here to be told.
                logger.warning("looking for answers: %s", error)
            return True

        super().__init__("dapr-runners-untold", look_again, _pauses)


def _pauses() -> Iterator[float]:
    pause = _FIRST_LOOK
    while True:
        yield pause
        pause = min(pause * 2, _LONGEST_PAUSE)
