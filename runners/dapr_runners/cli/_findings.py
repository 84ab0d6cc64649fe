"""What a check of ``dapr-runners doctor`` has found out."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

T = TypeVar("T")

Status = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is there (``text``, with the cause where something is wrong) and what to do
    (``remedy``). With a ``"warning"`` runs work; with a ``"problem"`` they do not."""

    subject: str
    status: Status
    text: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Whether runs work."""
        return self.status != "problem"


def within(seconds: float, ask: Callable[[], T]) -> T:
    """What ``ask`` returns or raises; TimeoutError after ``seconds``. Some calls of the Dapr SDK
    take no time limit, and one that hangs is left behind."""
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="dapr-runners-doctor", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answers[0]
