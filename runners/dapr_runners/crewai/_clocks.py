"""Time limits and rate limits of CrewAI's, counted on recorded time.

A program that is driven again over what is recorded takes no time, and must decide as it did. What
counts is how long the recorded steps took, and when they ended.
"""

import time
from typing import Any

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._asks import Ask
from dapr_runners.crewai._budgets import Budget, Overspent, budgets
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._strands import Place, current_place

_MINUTE = 60.0


def install() -> None:
    replace(crew.Agent, "_execute_with_timeout", _with_timeout)
    replace(crew.Agent, "_aexecute_with_timeout", _with_timeout_async)
    if crew.PUTS_DATE_IN_PROMPT:
        replace(crew.Prompts, "_build_date_block", _date)
    else:
        replace(crew.Agent, "_inject_date_to_task", _date_in_task)
    replace(crew.RPMController, "check_or_wait", _check_or_wait)
    replace(crew.RPMController, "_reset_request_count", _reset_request_count)


def _with_timeout(original: Any) -> Any:
    def call(self: Any, task_prompt: str, task: Any, timeout: int) -> Any:
        if current_place() is None:
            return original(self, task_prompt, task, timeout)
        budget = Budget(timeout)
        token = budgets.set((*budgets.get(), budget))
        try:
            return self._execute_without_timeout(task_prompt, task)
        except BaseException as error:
            raise _as_crewai_would(error, budget, task, timeout) from error
        finally:
            budgets.reset(token)

    return call


def _with_timeout_async(original: Any) -> Any:
    async def call(self: Any, task_prompt: str, task: Any, seconds: int) -> Any:
        if current_place() is None:
            return await original(self, task_prompt, task, seconds)
        budget = Budget(seconds)
        token = budgets.set((*budgets.get(), budget))
        try:
            return await self._aexecute_without_timeout(task_prompt, task)
        except Overspent as error:
            raise _as_crewai_would(error, budget, task, seconds) from error
        finally:
            budgets.reset(token)

    return call


def _as_crewai_would(error: BaseException, budget: Budget, task: Any, seconds: int) -> Any:
    """What the original raises where ``error`` was raised inside."""
    if isinstance(error, Overspent):
        if error.budget is not budget:
            return error
        return TimeoutError(
            f"Task '{task.description}' execution timed out after {seconds} seconds. "
            "Consider increasing max_execution_time or optimizing the task."
        )
    if not isinstance(error, Exception) or crew.passes_through(error):
        return error
    return RuntimeError(f"Task execution failed: {error!s}")


def _check_or_wait(original: Any) -> Any:
    def call(self: Any) -> bool:
        place = current_place()
        if place is None or self.max_rpm is None:
            return original(self)
        limit = place.driver.local.setdefault(("rpm", id(self)), _Minute(self, place))
        return limit.take(place)

    return call


def _reset_request_count(original: Any) -> Any:
    def call(self: Any) -> None:
        if current_place() is None:  # else it would keep a thread, and nobody asks what it counts
            original(self)

    return call


class _Minute:
    """Requests within a minute of recorded time. The waits are durable timers."""

    def __init__(self, controller: Any, place: Place) -> None:
        self._controller = controller  # kept: its id names it
        self._began = self._now(place)
        self._count = 0

    def _now(self, place: Place) -> float:
        return place.driver.local.get("clock") or place.driver.note(place, "clock", time.time)

    def take(self, place: Place) -> bool:
        now = self._now(place)
        if now - self._began >= _MINUTE:
            self._began, self._count = now, 0
        if self._count >= self._controller.max_rpm:
            self._controller.logger.log(
                "info", "Max RPM reached, waiting for next minute to start."
            )
            place.driver.step(
                place,
                Ask(
                    kind="pause",
                    name="pause",
                    head=_MINUTE,
                    messages=[],
                    execute=lambda: None,
                    asked={"seconds": _MINUTE},
                ),
            )
            self._count = 0
        self._count += 1
        return True


def _date(original: Any) -> Any:
    def call(self: Any) -> str:
        place = current_place()
        if place is None or not getattr(self.agent, "inject_date", False):
            return original(self)
        return place.driver.note(place, "date", lambda: original(self))

    return call


def _date_in_task(original: Any) -> Any:
    def call(self: Any, task: Any) -> None:
        place = current_place()
        if place is None or not self.inject_date:
            return original(self, task)

        def dated() -> str:
            original(self, task)
            return task.description

        task.description = place.driver.note(place, "date", dated)
        return None

    return call
