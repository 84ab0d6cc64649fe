"""Drives a program of CrewAI's in this process, each outside call a step whose value crosses the
codec, as it would be recorded. Nothing is stored."""

import asyncio
import builtins
import contextvars
import itertools
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from live_codec import LiveCodec, LiveTable

from dapr_runners.crewai._asks import Pending
from dapr_runners.crewai._chunks import Chunks
from dapr_runners.crewai._driver import Driver
from dapr_runners.crewai._human import WAITS
from dapr_runners.crewai._outcomes import Outcome
from dapr_runners.crewai._strands import here
from dapr_runners.crewai._types import Types
from dapr_runners.state import Codec


class LiveTypes(Types):
    """Takes every value: what the strict codec refuses is handed over live."""

    def __init__(self, table: LiveTable) -> None:
        self._table = table
        super().__init__((), ())

    @property
    def codec(self) -> Codec:
        return self._codec

    @codec.setter
    def codec(self, strict: Codec) -> None:
        self._codec = LiveCodec(strict, self._table)


class Unheard(Chunks):
    """Nobody listens to what a model says while it says it."""

    def __init__(self) -> None:
        self.data = []

    def said(self, step: str, text: str) -> None:
        pass


class LocalDriver(Driver):
    """Starts its program in the context of its caller: the tests set things in it."""

    def start(self) -> None:
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._run,), daemon=True).start()


class Steps:
    """Runs programs, and counts their steps by kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.table = LiveTable()
        self._numbers = itertools.count(1)

    def is_due(self, target: Any) -> bool:
        """Whether a call on ``target`` that begins here is one to drive: a blocking one, outermost,
        that returns its result."""
        if here.get() is not None or getattr(target, "stream", False):
            return False
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return True
        return False

    def run(self, body: Callable[[], Any]) -> Any:
        """What ``body`` returns; raises what it raises."""
        self.counts["runs"] += 1
        types = LiveTypes(self.table)
        driver = LocalDriver(f"run-{next(self._numbers)}", body, (), types, False, lambda: None)
        driver.start()
        begun: set[str] = set()
        while True:
            with driver._changed:
                new = [one for one in driver.pending.values() if one.key not in begun]
                if not new and not driver.finished:
                    driver._changed.wait(1.0)
                    continue
            if driver.finished:
                break
            for pending in new:
                begun.add(pending.key)
                threading.Thread(target=self._perform, args=(driver, pending), daemon=True).start()
        if driver.error is not None:
            raise driver.error
        return driver.result

    def _perform(self, driver: Driver, pending: Pending) -> None:
        self.counts[f"{pending.kind} steps"] += 1
        try:
            known = pending.known()
            known.outcome = self._outcome(driver, pending)
        except BaseException as error:  # pytest's own, for example
            driver.error = error
            driver.unwind()
            with driver._changed:
                driver.finished = True
                driver._changed.notify_all()
        else:
            driver.learn([known])

    def _outcome(self, driver: Driver, pending: Pending) -> Outcome:
        if pending.kind != WAITS:
            return driver.run_pending(pending, Unheard())
        # The person of the tests sits where CrewAI would ask.
        context = pending.context.copy()
        return driver.perform(lambda: context.run(builtins.input), "an answer", (), 0.0)
