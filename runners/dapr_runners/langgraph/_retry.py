"""Retries of the runner, for nodes that have no RetryPolicy of LangGraph's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from langgraph.types import RetryPolicy

from dapr_runners.engine import Retry


@dataclass(frozen=True)
class StepRetry(Retry):
    """How a failed node without a LangGraph RetryPolicy is tried again. The waits are durable
    timers: they hold no worker and outlast every process.

    ``max_attempts`` counts the first one; ``first_interval`` and ``cap`` are seconds; each wait is
    ``backoff`` times the one before, up to ``cap``, plus up to ``jitter`` of itself;
    ``retry_on`` is exception classes, or a function of the exception; those of ``non_retryable``
    are never retried; no attempt begins later than ``deadline`` seconds after the first one did.
    A service's ``Retry-After``, which the exception carries, is honoured.
    """

    retry_on: Sequence[type[Exception]] | Callable[[Exception], bool] = field(
        default_factory=lambda: RetryPolicy().retry_on  # type: ignore[arg-type]
    )

    def pause(self, error: BaseException, attempt: int, age: float = 0.0) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1), when the first one
        began ``age`` seconds ago; None to give up."""
        return self._pause(error, attempt, age)
