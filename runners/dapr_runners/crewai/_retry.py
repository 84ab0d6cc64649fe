"""Retries of the runner, for tools."""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolRetry:
    """How a tool that raised is tried again before the agent is told. The waits are durable timers:
    they hold no worker and outlast every process. What CrewAI itself does about a failed tool comes
    after that, and is recorded.

    ``max_attempts`` counts the first one; ``first_interval`` and ``cap`` are seconds; each wait is
    ``backoff`` times the one before, up to ``cap``, plus up to ``jitter`` of itself; ``retry_on``
    is exception classes, or a function of the exception; ``tools`` are names (default: all tools).
    """

    max_attempts: int = 3
    first_interval: float = 1.0
    backoff: float = 2.0
    cap: float = 60.0
    jitter: float = 0.0
    retry_on: Sequence[type[Exception]] | Callable[[Exception], bool] = (Exception,)
    tools: Collection[str] | None = None

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

    def pause(self, tool: str, error: BaseException, attempt: int) -> float | None:
        """Seconds to wait after failed attempt number ``attempt`` (from 1) of ``tool``; None to
        give up."""
        if self.tools is not None and tool not in self.tools:
            return None
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
