"""What the status of a run and of a step can be, for who operates them."""

from enum import StrEnum


class RunStatus(StrEnum):
    """How far a run is."""

    PENDING = "pending"
    """It waits for a worker to begin it."""
    RUNNING = "running"
    SUSPENDED = "suspended"
    """Somebody has suspended it: it begins no step until it is resumed."""
    WAITING = "waiting"
    """It waits for answers."""
    PARKED = "parked"
    """It waits for a decision on an effect: see dead letters."""
    HELD_UP = "held up"
    """Something it cannot do without is away."""
    INTERRUPTED = "interrupted"
    """It has ended with a question, which the next turn of its thread answers."""
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether a run of this status has ended."""
        return self in _OVER


_OVER = (RunStatus.INTERRUPTED, RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED)


class StepStatus(StrEnum):
    """How far a step is."""

    PLANNED = "planned"
    """It has not begun, or is to begin again."""
    WORKING = "working"
    """It has begun, and nobody has recorded its end."""
    LOST = "lost"
    """Its worker is gone: the attempt is over, and another follows it when a worker is there."""
    WAITING = "waiting"
    """It is a question that is not answered yet."""
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    """It asked something."""
    RETRIED = "retried"
    """The attempt failed, and another follows it."""
    FAILED = "failed"
    LEFT = "left"
    """Its run has ended without it."""
