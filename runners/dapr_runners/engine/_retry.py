"""Retries of the runner: when a failed step is tried again."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dapr_runners.engine._retry_after import asked_to_wait


@dataclass(frozen=True)
class Retry:
    """Base of a framework's retry policy. The waits are durable timers: they hold no worker and
    outlast every process.

    ``max_attempts`` counts the first one; ``first_interval`` and ``cap`` are seconds; each wait is
    ``backoff`` times the one before, up to ``cap``, plus up to ``jitter`` of itself;
    ``retry_on`` is exception classes, or a function of the exception; those of ``non_retryable``
    are never retried; no attempt begins later than ``deadline`` seconds after the first one did.

    An exception that carries a service's ``Retry-After`` (as a number of seconds in
    ``retry_after``, or as a header of its ``response``) is not retried any sooner.
    """

    max_attempts: int = 3
    first_interval: float = 1.0
    backoff: float = 2.0
    cap: float = 60.0
    jitter: float = 0.0
    retry_on: Sequence[type[Exception]] | Callable[[Exception], bool] = (Exception,)
    non_retryable: Sequence[type[Exception]] = ()
    deadline: float | None = None

    def __post_init__(self) -> None:
        if (
            self.max_attempts < 1
            or self.backoff < 1
            or min(self.first_interval, self.cap, self.jitter) < 0
            or (self.deadline is not None and self.deadline < 0)
        ):
            raise ValueError(
                "max_attempts must be at least 1, first_interval, cap, jitter and deadline at "
                "least 0, backoff at least 1"
            )

    def _pause(self, error: BaseException, attempt: int, age: float) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1); None to give up.
        ``age`` is the seconds since the first one began."""
        if attempt >= self.max_attempts or not self._retries(error):
            return None
        try:
            wait = min(self.first_interval * self.backoff ** (attempt - 1), self.cap)
        except OverflowError:
            wait = self.cap
        wait += wait * self.jitter * random.random()  # nosec B311 # spreads waits, no secret
        wait = max(wait, asked_to_wait(error))
        if self.deadline is not None and age + wait > self.deadline:
            return None
        return wait

    def _retries(self, error: BaseException) -> bool:
        if not isinstance(error, Exception) or isinstance(error, _classes(self.non_retryable)):
            return False
        retry_on: Any = self.retry_on
        if callable(retry_on) and not isinstance(retry_on, type):
            return bool(retry_on(error))
        return isinstance(error, _classes(retry_on))


def _classes(given: Any) -> tuple[type[Exception], ...]:
    return (given,) if isinstance(given, type) else tuple(given)
