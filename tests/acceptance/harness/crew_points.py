"""A worker, or a caller, on a CrewAI runner, that tells where each call and each activity is."""

from typing import Any

from dapr_runners.crewai._asks import Pending
from dapr_runners.crewai._driver import Driver
from dapr_runners.engine import Work, record_key
from harness import crew_program
from harness.effects import Outside
from harness.hooks import Points


class StepPoints(Points):
    """Points of activities are ``"<name> <phase>"``. The name is the key of a step that has an
    activity of its own, or ``plan <n>`` for one that drives the program on, and answers it while
    one model is all it asks."""

    def name(self, work: Work) -> str:
        plan, _, step = work.key.partition(":")
        name = step or f"plan {plan}"
        self._names[record_key(work.run, work.key)] = name
        return name


def report_calls(outside: Outside) -> None:
    """Report ``"<step> starts"`` before each call of a model or a tool in this process, and
    ``"<step> ends"`` after it, when nothing of it is kept yet."""
    perform = Driver.run_pending

    def run_pending(self: Driver, pending: Pending, *args: Any, **more: Any) -> Any:
        outside.report(f"{pending.key} starts")
        outcome = perform(self, pending, *args, **more)
        outside.report(f"{pending.key} ends")
        return outcome

    Driver.run_pending = run_pending


class Program(crew_program.Program):
    """The same, with points at calls, too."""

    points_class = StepPoints

    def __init__(self, settings: dict[str, Any]) -> None:
        report_calls(Outside(settings["effects"], settings["case"]))
        super().__init__(settings)
