"""What `serve` does with the signals of its process."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

import pytest

from dapr_runners.engine import Worker, serve

pytestmark = pytest.mark.timeout(60)


class _Worker:
    """One whose step never ends."""

    busy = True

    def hold(self) -> None:
        pass


class Runner:
    """One that does, when it starts and when it stops, what a test wants done then."""

    def __init__(
        self, starting: Callable[[], Any] = int, stopping: Callable[[], Any] = int
    ) -> None:
        self.did: list[str] = []
        self.worker = cast(Worker, _Worker())
        self._starting, self._stopping = starting, stopping

    def start(self) -> None:
        self.did.append("start")
        self._starting()

    def shutdown(self) -> None:
        self.did.append("stop")
        self._stopping()


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """One that would be seen if it came to the program itself."""

    def come(_number: int, _frame: FrameType | None) -> None:
        raise AssertionError("it came to the program")

    before = signal.signal(request.param, come)
    yield request.param
    assert signal.signal(request.param, before) is come, "put back by serve"


def send(number: signal.Signals, times: int = 1) -> Callable[[], None]:
    def send_it() -> None:
        for _ in range(times):
            os.kill(os.getpid(), number)

    return send_it


def test_none_is_started_after_a_signal(number: signal.Signals) -> None:
    first, second = Runner(send(number)), Runner()
    serve(first, second, grace=0)
    assert (first.did, second.did) == (["start", "stop"], ["stop"])


def test_two_while_it_starts_cut_at_once(number: signal.Signals) -> None:
    began = Runner(send(number, 2))
    serve(began, grace=3600)
    assert began.did == ["start", "stop"]


def test_those_that_come_while_it_stops_are_its_own(number: signal.Signals) -> None:
    runner = Runner(send(number), send(number, 2))
    serve(runner, grace=0)
    assert runner.did == ["start", "stop"]


def test_others_are_the_programs(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        runner = Runner(lambda: (send(signal.SIGUSR1, 3)(), send(number, 2)()))
        serve(runner, grace=3600)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1] * 3


FORKS = """
import multiprocessing, os, signal, sys, time
from dapr_runners.engine import serve

class Worker:
    busy = False
    def hold(self): pass

class Runner:
    worker = Worker()
    def __init__(self, starting): self.start = starting
    def shutdown(self): pass

number = int(sys.argv[1])
child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,))

def fork():
    child.start()
    child.terminate()
    child.join(30)
    ended = child.exitcode
    child.kill()
    assert ended == -signal.SIGTERM, ended

started = []
def send():
    started.append("second")
    os.kill(os.getpid(), number)

serve(Runner(fork), Runner(send), grace=0)
assert started == ["second"], "it was no signal to this process"
"""


def test_a_forked_process_is_ended_by_what_it_is_sent(number: signal.Signals) -> None:
    # A process of its own: what others import has something against forks.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
