"""What is remembered of late: so many, from any thread."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from dapr_runners.engine._recent import Recent

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_the_last_that_were_added_are_kept() -> None:
    recent: Recent[int, None] = Recent(3)
    for number in range(5):
        recent[number] = None
    assert list(recent) == [2, 3, 4]


@pytest.mark.usefixtures("threads_take_turns_often")
def test_threads_may_add_at_once() -> None:
    recent: Recent[tuple[int, int], None] = Recent(4)

    def add(thread: int) -> None:
        for number in range(20_000):
            recent[thread, number] = None

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(8)))
    assert len(recent) == 4
