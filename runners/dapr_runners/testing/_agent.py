"""In the program under test: tells where its runs are, and dies where it is told to.

``dapr_runners`` installs it when the variable ``DAPR_RUNNERS_CRASH_TEST`` names a plan, a JSON
file::

    {"log": path,                                    # what is told, a JSON object a line
     "at": [step, phase, n] | None,                  # the n-th time (from 1) that this is reached
     "do": "kill" | "hold", "delay": seconds,        # die then, or wait until ``go`` is there
     "go": path}                                     # (with "jump" in it, the clock jumps)

A point is a step, or an effect as ``@name``, and one of these phases, in order::

    begins      it is to be done, nothing is done yet
    done        it is done, nothing is recorded of it
    recorded    its result is recorded
    answered    the workflow is told (of a step)
"""

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dapr_runners.effects import EffectUnknownError
from dapr_runners.effects._execution import Execution
from dapr_runners.engine import Chunk, Halt, Record, Runner, Work, record_key
from dapr_runners.testing._plan import PLAN

_MODEL = "(model)"
_JUMP_SECONDS = 3600
_OURS = {"__start__": "(start)", "__commit__": "(commit)", "advance": "(advance)"}
"""Steps that call no code of the user's, or such code between steps: it may run again."""

_VOLATILE = re.compile(
    r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
    r"|\b[0-9a-f]{32}\b|\b0x[0-9a-f]+\b|\b\d{10}(?:\.\d+)?\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?"
)
"""Ids, addresses and times in the text of a result."""


class Agent:
    """Tells of the runs of this process. Thread-safe."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._log = os.open(plan["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._at = None if plan["at"] is None else tuple(plan["at"])
        self._plan = plan
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._names: dict[str, tuple[str, str]] = {}

    # -- telling

    def tell(self, **what: Any) -> None:
        """A line of the log."""
        line = json.dumps({"pid": os.getpid(), "time": time.time(), **what})
        os.write(self._log, line.encode() + b"\n")

    def reach(self, run: str, step: str, phase: str, key: str, **more: Any) -> None:
        """``step`` of ``run``, whose record is ``key``, has reached ``phase``."""
        with self._lock:
            self._counts[step, phase] += 1
            n = self._counts[step, phase]
        self.tell(run=run, step=step, phase=phase, n=n, key=key, **more)
        if (step, phase, n) == self._at:
            self._act()

    def _act(self) -> None:
        if self._plan["do"] == "kill":
            if delay := self._plan["delay"]:
                threading.Thread(target=_die, args=(delay,), daemon=True).start()
            else:
                _die()
            return
        self.tell(held=True)
        go = Path(self._plan["go"])
        while not go.exists():
            time.sleep(0.01)
        if go.read_text() == "jump":
            _jump()

    # -- what is wrapped

    def watch(self, runner: Any) -> None:
        """Tell of the runs of ``runner``, which was just made."""
        adapter, journal = runner._adapter, runner._journal
        perform, execute = adapter.perform, journal.execute

        async def perform_and_tell(work: Work, io: Any) -> Any:
            step = self._name(work)
            self.reach(work.run, step, "begins", work.key)
            produced = await perform(work, io)
            self.reach(work.run, step, "done", work.key)
            return produced

        async def execute_and_tell(item: Any, io: Any) -> Any:
            outcome = await execute(item, io)
            work = Work(item)
            self.reach(work.run, self._name(work), "answered", work.key)
            return outcome

        adapter.perform, journal.execute = perform_and_tell, execute_and_tell
        self._watch_store(runner.store)
        if runner.framework == "crewai":
            self._watch_models()

    def _watch_models(self) -> None:
        """Models are asked inside the activity that drives a crew on."""
        from dapr_runners.crewai._driver import Driver

        driver_class: Any = Driver
        run_pending = driver_class.run_pending
        if run_pending.__module__ == __name__:
            return

        def run_and_tell(driver: Any, pending: Any, *args: Any, **rest: Any) -> Any:
            if pending.kind != "llm":  # it has an activity of its own
                return run_pending(driver, pending, *args, **rest)
            self.reach(driver.run, _MODEL, "begins", pending.key)
            outcome = run_pending(driver, pending, *args, **rest)
            self.reach(driver.run, _MODEL, "done", pending.key)
            return outcome

        driver_class.run_pending = run_and_tell

    def _watch_store(self, store: Any) -> None:
        if getattr(store, "_is_watched", False):
            return
        store._is_watched = True
        create, create_then, acreate = store.create, store.create_then, store.acreate

        def create_and_tell(key: str, value: bytes) -> bool:
            won = create(key, value)
            self._created(key, won)
            return won

        def create_then_tell(key: str, value: bytes, tell: Callable[..., None]) -> None:
            def tell_both(won: bool, error: Exception | None) -> None:
                if error is None:
                    self._created(key, won)
                tell(won, error)

            create_then(key, value, tell_both)

        async def acreate_and_tell(key: str, value: bytes) -> bool:
            won = await acreate(key, value)
            self._created(key, won)
            return won

        store.create, store.create_then, store.acreate = (
            create_and_tell,
            create_then_tell,
            acreate_and_tell,
        )

    def _created(self, key: str, won: bool) -> None:
        named = self._names.get(key)
        if named is not None and won:
            run = key.split("/")[2]
            self.reach(run, named[0], "recorded", named[1])

    def _name(self, work: Work) -> str:
        name = _OURS.get(work.step_name.rpartition("/")[2], work.step_name)
        self._names[record_key(work.run, work.key)] = name, work.key
        return name

    def watch_effects(self) -> None:
        """Tell of the functions that are declared as effects, and called in steps."""
        execution_class: Any = Execution
        running, succeeded = execution_class.running, execution_class.succeeded

        def reach(execution: Any, phase: str) -> None:
            declared = execution._declared
            run, key = execution._effects.run, execution._entry.key
            retries = declared.on_unknown == "retry"
            self.reach(run, f"@{declared.name}", phase, key, retries=retries)

        @contextmanager
        def running_and_tell(execution: Any) -> Generator[None]:
            with running(execution):
                reach(execution, "begins")
                yield
                reach(execution, "done")

        async def succeeded_and_tell(execution: Any, *args: Any) -> None:
            counts = True
            try:
                await succeeded(execution, *args)
            except Halt:  # its lease was lost, and its result with it
                counts = False
                raise
            finally:
                if counts:
                    reach(execution, "recorded")

        execution_class.running, execution_class.succeeded = running_and_tell, succeeded_and_tell

    def watch_callers(self) -> None:
        """Tell what the callers in this process are given."""
        runner_class: Any = Runner
        follow = runner_class._follow

        async def follow_and_tell(
            runner: Any, io: Any, run: str, *args: Any, **kwargs: Any
        ) -> AsyncIterator[Any]:
            last: Chunk | None = None
            self.tell(run=run, follows=True)
            try:
                async for event in follow(runner, io, run, *args, **kwargs):
                    if isinstance(event, Chunk):
                        last = event
                    elif event.outcome["k"] == "end":
                        status = event.outcome["status"]
                        result = self._result(runner, run, event, last)
                        self.tell(run=run, ended=status, result=result)
                    yield event
            except EffectUnknownError as error:
                self.tell(run=run, unknown=error.effect)
                raise

        runner_class._follow = follow_and_tell

    def _result(self, runner: Any, run: str, end: Record, last: Chunk | None) -> str:
        codec = runner._codec
        types_of = getattr(runner._adapter, "types_of", None)
        if types_of is not None:  # they grow with what a crew is made of
            codec = types_of(run).codec
        for name in ("error", "result"):
            if (data := end.body.get(name)) is not None:
                return _plain(codec.decode(data, f"the {name} of {run}"))
        return "" if last is None else _plain(codec.decode(last.data, last.id))


def _plain(value: Any) -> str:
    return _VOLATILE.sub("...", f"{type(value).__name__}: {value!r}")


def _jump() -> None:
    """Set the clock of this process ahead, as far as Python's ``time`` tells it."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + _JUMP_SECONDS
    time.time_ns = lambda: real_ns() + _JUMP_SECONDS * 10**9


def _die(delay: float = 0.0) -> None:
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGKILL)


def install() -> None:
    """Watch every runner that is made in this process from now on."""
    agent = Agent(json.loads(Path(os.environ[PLAN]).read_text()))
    agent.tell(life=True)
    runner_class: Any = Runner
    init = runner_class.__init__

    def init_and_watch(runner: Any, *args: Any, **kwargs: Any) -> None:
        init(runner, *args, **kwargs)
        agent.watch(runner)

    runner_class.__init__ = init_and_watch
    agent.watch_callers()
    agent.watch_effects()
