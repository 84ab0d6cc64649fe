"""Retries of the runner, for tools."""

from collections.abc import Collection
from dataclasses import dataclass

from dapr_runners.engine import Retry


@dataclass(frozen=True)
class ToolRetry(Retry):
    """How a tool that raised is tried again before the agent is told. The waits are durable timers:
    they hold no worker and outlast every process. What CrewAI itself does about a failed tool comes
    after that, and is recorded.

    ``max_attempts`` counts the first one; ``first_interval`` and ``cap`` are seconds; each wait is
    ``backoff`` times the one before, up to ``cap``, plus up to ``jitter`` of itself; ``retry_on``
    is exception classes, or a function of the exception; those of ``non_retryable`` are never
    retried; no attempt begins later than ``deadline`` seconds after the first one did; ``tools``
    are names (default: all tools). A service's ``Retry-After``, which the exception carries, is
    honoured.
    """

    tools: Collection[str] | None = None

    def pause(
        self, tool: str, error: BaseException, attempt: int, age: float = 0.0
    ) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1) of ``tool``, when the
        first one began ``age`` seconds ago; None to give up."""
        if self.tools is not None and tool not in self.tools:
            return None
        return self._pause(error, attempt, age)
