"""The span of an attempt at a step, and what is below it."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.context import Context

from dapr_runners.engine import Call
from dapr_runners.telemetry._genai import ModelCall, ToolCall
from dapr_runners.telemetry._spans import fail, nanoseconds

if TYPE_CHECKING:
    from dapr_runners.telemetry._telemetry import Telemetry


class SpannedAttempt:
    """An attempt at the step ``task``."""

    def __init__(
        self,
        telemetry: "Telemetry",
        context: Context,
        *,
        task: str,
        key: str,
        name: str,
        number: int,
        attributes: dict[str, Any],
        span_id: int | None,
    ) -> None:
        self.task, self.key, self.name, self.number = task, key, name, number
        self.began = time.time()
        self.error: BaseException | None = None
        self._telemetry = telemetry
        self._is_over = False
        self._span = telemetry.spans.start(
            f"attempt {name}", context, attributes, span_id=span_id, began=self.began
        )

    def current(self) -> AbstractContextManager[Any]:
        """Within, the span is the current one."""
        return trace.use_span(self._span, record_exception=False, set_status_on_exception=False)

    def ended(self, error: BaseException | None = None) -> None:
        """End the span, if it has not ended."""
        if self._is_over:
            return
        self._is_over, self.error = True, error
        ended = time.time()
        if error is not None:
            fail(self._span, error, self._telemetry.captures)
        self._span.end(nanoseconds(ended))
        self._telemetry.metrics.attempt(self.name, ended - self.began, error)

    def chat(self, request: dict[str, Any], content: Callable[[], Any]) -> Call:
        return ModelCall(self._telemetry, request, content)

    def tool(self, tool: dict[str, Any], content: Callable[[], Any]) -> Call:
        return ToolCall(self._telemetry, tool, content)
