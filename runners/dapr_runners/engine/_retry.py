"""Retries of the runner: when a failed step is tried again."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Retry:
    """Base of a framework's retry policy. The waits are durable timers: they hold no worker and
    outlast every process.

    ``max_attempts`` counts the first one; ``first_interval`` and ``cap`` are seconds; each wait is
    ``backoff`` times the one before, up to ``cap``, plus up to ``jitter`` of itself;
    ``retry_on`` is exception classes, or a function of the exception.
    """

    max_attempts: int = 3
    first_interval: float = 1.0
    backoff: float = 2.0
    cap: float = 60.0
    jitter: float = 0.0
    retry_on: Sequence[type[Exception]] | Callable[[Exception], bool] = (Exception,)

    def __post_init__(self) -> None:
        if (
            self.max_attempts < 1
            or self.backoff < 1
            or min(self.first_interval, self.cap, self.jitter) < 0
        ):
            raise ValueError(
                "max_attempts must be at least 1, first_interval, cap and jitter at least 0, "
                "backoff at least 1"
            )

    def _pause(self, error: BaseException, attempt: int) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1); None to give up."""
        if attempt >= self.max_attempts or not self._retries(error):
            return None
        try:
            wait = min(self.first_interval * self.backoff ** (attempt - 1), self.cap)
        except OverflowError:
            wait = self.cap
        return wait + wait * self.jitter * random.random()

    def _retries(self, error: BaseException) -> bool:
        if not isinstance(error, Exception):
            return False
        retry_on: Any = self.retry_on
        if isinstance(retry_on, type):
            return isinstance(error, retry_on)
        if callable(retry_on):
            return bool(retry_on(error))
        return isinstance(error, tuple(retry_on))
