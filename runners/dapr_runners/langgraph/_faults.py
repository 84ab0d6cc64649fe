"""The state store's faults, met in the middle of a graph's own code.

Whatever raises an Exception inside a step is the step's own failure to LangGraph, and would be
recorded as such. A store that is away is not: what a graph asks it for is asked again, and when
that does not help the whole activity fails, to be tried again by the workflow. So it does when this
process lacks the keys.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from dapr_runners.engine import Halt
from dapr_runners.state import (
    EncryptionError,
    SidecarUnreachableError,
    StateStoreError,
    is_lasting,
)

T = TypeVar("T")

_PATIENCE = 20.0


class StoreFault(BaseException):
    """``error`` is a fault of the store. No Exception, so that no graph takes it for its own."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def is_exit(error: BaseException) -> bool:
    """Whether a node left by what is no Exception (``sys.exit``, say), which its caller gets."""
    no_exit = (Exception, StoreFault, Halt, asyncio.CancelledError, GeneratorExit)
    return not isinstance(error, no_exit)


def steadily(ask: Callable[[], T]) -> T:
    """What ``ask`` returns, asked again while the store is away; raises :class:`StoreFault`."""
    pauses = _pauses()
    while True:
        try:
            return ask()
        except EncryptionError as error:
            raise StoreFault(error) from error
        except (SidecarUnreachableError, StateStoreError) as error:
            pause = None if is_lasting(error) else next(pauses, None)
            if pause is None:
                raise StoreFault(error) from error
        time.sleep(pause)


async def steadily_async(ask: Callable[[], Awaitable[T]]) -> T:
    """Twin of :func:`steadily`."""
    pauses = _pauses()
    while True:
        try:
            return await ask()
        except EncryptionError as error:
            raise StoreFault(error) from error
        except (SidecarUnreachableError, StateStoreError) as error:
            pause = None if is_lasting(error) else next(pauses, None)
            if pause is None:
                raise StoreFault(error) from error
        await asyncio.sleep(pause)


def _pauses() -> Iterator[float]:
    end = time.monotonic() + _PATIENCE
    pause = 0.05
    while time.monotonic() < end:
        yield pause
        pause = min(pause * 2, 2.0)
