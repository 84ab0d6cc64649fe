"""Time limits of CrewAI's, counted on what is recorded."""

import contextvars


class Budget:
    """Seconds that the steps of a piece of work may take, counted on what is recorded."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def spend(self, seconds: float) -> None:
        self.left -= seconds
        if self.left < 0:
            raise Overspent(self)


class Overspent(BaseException):
    """The steps under ``budget`` took too long. No Exception: CrewAI would retry."""

    def __init__(self, budget: Budget) -> None:
        super().__init__("the time is up")
        self.budget = budget


budgets: contextvars.ContextVar[tuple[Budget, ...]] = contextvars.ContextVar(
    "dapr_runners_crewai_budgets", default=()
)
