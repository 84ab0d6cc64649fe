"""Waiting for what happens elsewhere, with an end."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = 60, every: float = 0.01) -> T:
    """What ``condition`` returns once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not so after {seconds} s: {condition}")
        time.sleep(every)
    return found
