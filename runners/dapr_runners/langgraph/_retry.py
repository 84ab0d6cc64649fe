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
    ``retry_on`` is exception classes, or a function of the exception.
    """

    retry_on: Sequence[type[Exception]] | Callable[[Exception], bool] = field(
        default_factory=lambda: RetryPolicy().retry_on  # type: ignore[arg-type]
    )

    def pause(self, error: BaseException, attempt: int) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1); None to give up."""
        return self._pause(error, attempt)
