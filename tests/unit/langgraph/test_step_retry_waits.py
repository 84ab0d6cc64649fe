"""The waits of StepRetry."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
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


def test_what_is_never_retried() -> None:
    retry = StepRetry(retry_on=[OSError], non_retryable=[FileNotFoundError])
    assert retry.pause(PermissionError(), 1) == 1
    assert retry.pause(FileNotFoundError(), 1) is None


def test_no_attempt_begins_after_the_deadline() -> None:
    retry = StepRetry(max_attempts=9, first_interval=4, backoff=1, deadline=10)
    assert [retry.pause(ConnectionError(), 1, age) for age in (0, 6, 6.5, 11)] == [4, 4, None, None]


class _Answered(Exception):
    def __init__(self, headers: object) -> None:
        super().__init__()
        self.response = type("Response", (), {"headers": headers})()


class _Busy(Exception):
    retry_after = 7.5


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (_Busy(), 7.5),
        (_Answered(httpx.Headers({"Retry-After": "120"})), 120),
        (_Answered({"Retry-After": "0.2"}), 1),
        (_Answered({"retry-after": "soon"}), 1),
        (_Answered({"Retry-After": "nan"}), 1),
        (_Answered({"Retry-After": "-9"}), 1),
        (_Answered({}), 1),
        (_Answered(None), 1),
        (_Answered({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), 1),
    ],
)
def test_what_a_service_asks_for_is_waited_out(error: Exception, wait: float) -> None:
    retry = StepRetry(retry_on=[Exception], cap=2)
    assert retry.pause(error, 1) == wait


def test_a_date_to_wait_for() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    wait = StepRetry(retry_on=[Exception]).pause(_Answered({"Retry-After": date}), 1)
    assert wait is not None
    assert 80 < wait <= 90


def test_a_service_that_asks_for_more_than_the_deadline_is_given_up() -> None:
    retry = StepRetry(retry_on=[Exception], deadline=60)
    assert retry.pause(_Answered({"Retry-After": "61"}), 1) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"max_attempts": 0},
        {"first_interval": -1},
        {"backoff": 0.5},
        {"cap": -1},
        {"jitter": -0.1},
        {"deadline": -1},
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="max_attempts must be at least 1, "):
        StepRetry(**settings)  # type: ignore[arg-type]
