"""The waits of StepRetry."""

import pytest

from dapr_runners.langgraph import StepRetry


def test_each_wait_is_longer_up_to_the_cap() -> None:
    retry = StepRetry(max_attempts=6, first_interval=1, backoff=3, cap=10)
    error = ConnectionError()
    assert [retry.pause(error, attempt) for attempt in range(1, 7)] == [1, 3, 9, 10, 10, None]


def test_however_many_attempts_there_are_the_cap_holds() -> None:
    assert StepRetry(max_attempts=5000, cap=7).pause(ConnectionError(), 4000) == 7


def test_jitter_adds_up_to_its_share() -> None:
    retry = StepRetry(first_interval=2, jitter=0.5)
    waits = {retry.pause(ConnectionError(), 1) for _ in range(200)}
    assert all(2 <= wait <= 3 for wait in waits if wait is not None)
    assert len(waits) > 100


@pytest.mark.parametrize(
    ("retry_on", "is_retried"),
    [
        ([OSError, ValueError], True),
        ([KeyError], False),
        (ValueError, True),
        (KeyError, False),
        (lambda error: str(error) == "now", True),
        (lambda error: False, False),
    ],
)
def test_what_is_retried(retry_on: object, is_retried: bool) -> None:
    retry = StepRetry(retry_on=retry_on)  # type: ignore[arg-type]
    assert (retry.pause(ValueError("now"), 1) is not None) == is_retried


def test_what_ends_a_process_is_not_retried() -> None:
    assert StepRetry(retry_on=lambda error: True).pause(KeyboardInterrupt(), 1) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"max_attempts": 0},
        {"first_interval": -1},
        {"backoff": 0.5},
        {"cap": -1},
        {"jitter": -0.1},
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="max_attempts must be at least 1, "):
        StepRetry(**settings)  # type: ignore[arg-type]
