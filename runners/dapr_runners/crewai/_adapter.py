"""CrewAI, seen by the engine: drive the program to its next steps, and perform them."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from dapr_runners.crewai._asks import Pending
from dapr_runners.crewai._chunks import Chunks
from dapr_runners.crewai._driver import Driver
from dapr_runners.crewai._effects import EffectsAsSteps
from dapr_runners.crewai._history import History
from dapr_runners.crewai._human import WAITS
from dapr_runners.crewai._outcomes import Known, Outcome
from dapr_runners.crewai._programs import Program, roots_of, run_target
from dapr_runners.crewai._tasks import thaw_task
from dapr_runners.crewai._types import Types
from dapr_runners.crewai.errors import StepMismatchError
from dapr_runners.effects import EffectHost
from dapr_runners.engine import (
    AGAIN,
    ANY_NAME,
    IO,
    Bus,
    Json,
    LiveLog,
    PoisonStepError,
    Produced,
    Record,
    StepTimeoutError,
    Work,
    resolved_key,
    spec_key,
    unpack_spec,
)
from dapr_runners.engine.errors import RunNotFoundError

ADVANCE = "advance"
_MAX_DRIVERS = 128
"""Programs that this process keeps in the middle; others are driven again when they go on."""
_ASKED_WITHIN = 120.0
"""Seconds that a program driven again may take to ask for a step it asked for before."""

RetryAfter = Callable[[str, BaseException, int, float], float | None]


class CrewAdapter:
    """Runs the items of one runner."""

    def __init__(
        self,
        runner: str,
        program: Program,
        types: Types,
        *,
        bus: Bus,
        live_log: LiveLog,
        wake: Callable[[str], None],
        accepts_mismatch: bool,
        retry_after: RetryAfter,
        effects: EffectHost,
    ) -> None:
        self._runner = runner
        self._effects = effects
        self._program = program
        self._types = types
        self._bus = bus
        self._live_log = live_log
        self._wake = wake
        self._accepts_mismatch = accepts_mismatch
        self._retry_after = retry_after
        self._history = History(types.codec)
        self._lock = threading.Lock()
        self._drivers: OrderedDict[str, Driver] = OrderedDict()
        self._locks: dict[str, threading.RLock] = {}
        self._result_types: OrderedDict[str, Types] = OrderedDict()

    def types_of(self, run: str) -> Types:
        """The classes that the result of ``run`` may have, as far as this process knows."""
        return self._result_types.get(run, self._types)

    # -- the engine's side

    def activity_names(self) -> Sequence[str]:
        return ["__start__", ADVANCE, "llm", ANY_NAME]

    def is_hot(self, work: Work) -> bool:
        if work.op == "begin" or work.attempt > 1:
            return False
        driver = self._peek(work.run)
        if driver is None:
            return False
        if work.op == "step":
            pending = driver.pending.get(work.item["task"])
            return pending is not None and pending.told_here and not pending.executing
        return driver.plan == work.n

    async def perform(self, work: Work, io: IO) -> Produced:
        if work.op == "step":
            return await self._step(work, io)
        try:
            if work.injected is not None and work.op != "fuse":
                return self._failed(work, work.injected)
            return await self._advance(work, io)
        except BaseException:
            # It may have gone on with what will never be recorded.
            self._drop(work.run)
            raise

    async def recorded(self, work: Work, record: Record, produced: Produced | None, io: IO) -> None:
        driver = self._peek(work.run)
        if driver is None:
            return
        if work.op == "step":
            if produced is not None and produced.held is driver:
                driver.results[record.key] = Known.unpack(record.body["known"])
            return
        if produced is None or produced.held is not driver:
            # Another attempt's record counts: the program here has gone another way.
            self._drop(work.run)
            return
        driver.plan = work.n + 1
        if driver.is_only_waiting() and record.outcome["k"] == "plan":
            self._drop(work.run)

    def forget(self, run: str) -> None:
        self._drop(run)

    # -- programs at work

    def _peek(self, run: str) -> Driver | None:
        driver = self._drivers.get(run)
        return None if driver is None or driver.unwound else driver

    def _drop(self, run: str) -> None:
        with self._lock:
            driver = self._drivers.pop(run, None)
            self._locks.pop(run, None)
        if driver is not None:
            driver.unwind()

    def _drop_if(self, run: str, driver: Driver) -> None:
        with self._lock:
            if self._drivers.get(run) is driver:
                del self._drivers[run]

    async def _driver(self, work: Work, io: IO) -> Driver:
        """The program of the run, driven to where plan ``work.n`` left it."""
        with self._lock:
            lock = self._locks.setdefault(work.run, threading.RLock())
        with lock:
            driver = self._peek(work.run)
            if driver is None:
                known = await self._history.between(work.run, 0, work.n, io)
                return await self._start(work, known, io)
            if driver.plan < work.n:
                known = await self._history.between(work.run, driver.plan + 1, work.n, io)
                driver.plan = work.n
                driver.learn(known)
            return driver

    async def _start(self, work: Work, known: list[Known], io: IO) -> Driver:
        spec = await self._spec(work.run, io)
        types = self._types.child()
        program = self._program
        task: bytes | None = spec.get("task")

        def body() -> Any:
            inputs = types.codec.decode(spec["inputs"], "the inputs")
            target = program.build(inputs)
            types.learn(*roots_of(target))
            made = None if task is None else partial(thaw_task, task, types.codec)
            return run_target(target, spec["how"], inputs, made)

        effects = replace(self._effects, codec=types.codec)
        driver = Driver(
            work.run,
            body,
            known,
            types,
            self._accepts_mismatch,
            lambda: self._wake(work.run),
            partial(effects.step, work.run, tenant=spec.get("tenant") or ""),
            EffectsAsSteps(),
            work.watch,
        )
        driver.plan = work.n
        with self._lock:
            self._drivers[work.run] = driver
            oldest = list(self._drivers)[: max(len(self._drivers) - _MAX_DRIVERS, 0)]
        driver.start()
        for run in oldest:
            self._drop(run)
        return driver

    async def _spec(self, run: str, io: IO) -> Json:
        data = await io.get(spec_key(run))
        if data is None:
            raise RunNotFoundError(run_id=run)
        return unpack_spec(self._types.codec, data, run)

    # -- ops

    async def _advance(self, work: Work, io: IO) -> Produced:
        done: list[list[str]] = work.item.get("done", [])
        settled: list[Known] = []
        known: list[Known] = []
        chunks = self._chunks_of(work)
        while True:
            driver = await self._driver(work, io)
            if len(settled) < len(done):
                settled = await self._settled(driver, work.run, done, io)
            driver.told = False  # what it asks for from here on is found below
            driver.learn([*settled, *known])
            produced = self._drive(work, driver, known, chunks, await self._resolved(work, io))
            if produced is not None:
                produced.messages = [
                    m for one in known if one.outcome for m in one.outcome.messages
                ]
                return _with(produced, chunks)
            # It was given up meanwhile, to make room: another takes its place.
            self._drop_if(work.run, driver)

    def _chunks_of(self, work: Work) -> Chunks:
        return Chunks(work, self._types.codec, self._bus, self._live_log)

    def _drive(
        self,
        work: Work,
        driver: Driver,
        known: list[Known],
        chunks: Chunks,
        resolved: Outcome | None,
    ) -> Produced | None:
        """Let the program go on to its next steps, performing one LLM call at most, which is added
        to ``known``, or has ``resolved`` as its outcome. None when the driver was given up."""
        if work.op == "fuse" and not known:
            call = driver.find(work.item["task"], _ASKED_WITHIN)
            if call is None and not driver.finished:
                return None if driver.unwound else self._failed(work, self._not_asked(work))
            if call is not None and not self._perform_call(
                work, driver, call, self._injected(driver, work.injected) or resolved, known, chunks
            ):
                return Produced({"k": "none"})
        state = driver.settle_down()
        call = driver.lone("llm") if not known and state == "parked" else None
        # Nobody would give it up here: with a limit, it is a step that can be given up.
        if call is not None and call.limit is None and "limit" not in work.item:
            if not self._perform_call(work, driver, call, None, known, chunks):
                return Produced({"k": "none"})
            state = driver.settle_down()
        if driver.unwound:
            return None
        past = [at for _, at in work.item.get("done", [])]
        if state == "done":
            return self._ended(work, driver, known, past)
        return self._plan(work, driver, known, past, state == "busy")

    async def _settled(
        self, driver: Driver, run: str, done: list[list[str]], io: IO
    ) -> list[Known]:
        here = [driver.results.pop(at, None) for _, at in done]
        there = [at for (_, at), one in zip(done, here, strict=True) if one is None]
        known = [one for one in here if one is not None]
        return known + await self._history.outcomes(run, there, io)

    def _perform_call(
        self,
        work: Work,
        driver: Driver,
        call: Pending,
        given: Outcome | None,
        known: list[Known],
        chunks: Chunks,
    ) -> bool:
        """Perform an LLM call, unless its outcome is ``given``, and deliver its answer; False when
        somebody gave it up meanwhile."""
        outcome = given or driver.run_pending(call, chunks, watch=work.watch)
        if call.outcome is not None:
            return False
        told = call.known()
        told.outcome = outcome
        known.append(told)
        driver.learn([told])
        return True

    def _plan(
        self, work: Work, driver: Driver, known: list[Known], past: list[str], is_busy: bool
    ) -> Produced:
        lone = None if is_busy else driver.lone()
        call = lone if lone is not None and lone.kind == "llm" else None
        new = driver.tell()
        steps: list[Json] = []
        for pending in new:
            step: Json = {"id": pending.key, "name": pending.name}
            if pending is call:
                step["fuse"] = True
            if pending.limit is not None:
                step["limit"] = max(min(pending.limit, work.item.get("limit", pending.limit)), 0.01)
            if pending.kind == WAITS:
                step["wait"] = True
            elif pending is lone and pending is not call:
                step["then"] = True
            steps.append(step)
        outcome: Json = {
            "k": "plan",
            "lane": work.lane,
            "at": work.key,
            "n": work.n + 1,
            "steps": steps,
            "commit": ADVANCE,
            "rolling": True,
            "past": past,
        }
        if is_busy:
            outcome["again"] = driver.quiet = min(driver.quiet * 2, 30.0)
        asked = {pending.key: pending.asked for pending in new}
        return Produced(
            outcome,
            body={
                "known": [one.pack() for one in (*known, *driver.take_notes())],
                "told": [pending.known().pack() for pending in new],
                "asked": self._types.codec.encode(_plain(asked)),
            },
            held=driver,
        )

    def _ended(self, work: Work, driver: Driver, known: list[Known], past: list[str]) -> Produced:
        error = driver.error
        if error is None and (unclaimed := driver.unclaimed) and not self._accepts_mismatch:
            error = StepMismatchError(
                run_id=work.run,
                step=unclaimed[0],
                diff="\n- this step was recorded\n+ the program ended without asking for it\n",
            )
        status = "completed" if error is None else "failed"
        body: Json = {"known": [one.pack() for one in (*known, *driver.take_notes())]}
        codec = driver.types.codec
        if error is None:
            try:
                body["result"] = codec.encode(driver.result, "the result")
            except Exception as unstorable:
                error, status = unstorable, "failed"
        if error is not None:
            body["error"] = codec.encode(error, "the error")
        self._keep_types(work.run, driver.types)
        return Produced(
            {"k": "end", "at": work.key, "status": status, "past": past}, body, held=driver
        )

    def _keep_types(self, run: str, types: Types) -> None:
        with self._lock:
            self._result_types[run] = types
            while len(self._result_types) > _MAX_DRIVERS:
                self._result_types.popitem(last=False)

    def _failed(self, work: Work, error: BaseException) -> Produced:
        body = {"error": self._types.codec.encode(error, "the error")}
        return Produced({"k": "end", "at": work.key, "status": "failed"}, body)

    async def _step(self, work: Work, io: IO) -> Produced:
        key: str = work.item["task"]
        chunks = self._chunks_of(work)
        while True:
            driver = await self._driver(work, io)
            pending = driver.find(key, _ASKED_WITHIN)
            if pending is not None or not driver.unwound:
                break
            self._drop_if(work.run, driver)
        if work.injected is not None:
            outcome = self._injected(driver, work.injected)
        elif (resolved := await self._resolved(work, io)) is not None:
            outcome = resolved
        elif pending is None:
            error = driver.error if driver.finished and driver.error else self._not_asked(work)
            outcome = Outcome("fatal", driver.types.codec.encode(error))
        elif pending.kind == "pause" and work.attempt == 1:
            return work.again(work.item["task"], cast(float, pending.asked["seconds"]))
        else:
            order = (work.item.get(AGAIN, 0), work.attempt)
            number = work.attempt - 1 + work.begun
            outcome = driver.run_pending(pending, chunks, number, order, work.watch)
            if (pause := self._pause(driver, work, pending, outcome)) is not None:
                return work.again(work.item["task"], pause)
        assert outcome is not None
        settled: Json = {
            "k": "step",
            "lane": work.lane,
            "n": work.n,
            "id": key,
            "at": work.key,
        }
        if outcome.kind != "value":
            settled["raised"] = "error"
        body: Json = {"known": Known(key, outcome=outcome).pack()}
        return _with(Produced(settled, body, held=driver, messages=outcome.messages), chunks)

    def _pause(
        self, driver: Driver, work: Work, pending: Pending, outcome: Outcome
    ) -> float | None:
        if outcome.kind != "error" or pending.kind not in ("tool", "effect"):
            return None
        error = driver.types.codec.decode(outcome.data, "the error")
        return self._retry_after(pending.name, error, work.attempt, work.age)

    def _injected(self, driver: Driver, error: BaseException | None) -> Outcome | None:
        """What the engine says came of a step."""
        if error is None:
            return None
        kind = "fatal" if isinstance(error, PoisonStepError) else "error"
        # A limit of CrewAI's is over, too, if it was that.
        took = error.seconds + 0.001 if isinstance(error, StepTimeoutError) else 0.0
        data = driver.types.codec.encode(error, "the error")
        return Outcome(kind, data, took, round(time.time(), 3))

    async def _resolved(self, work: Work, io: IO) -> Outcome | None:
        """What somebody has said that came of a step, if they have."""
        if AGAIN not in work.item or "task" not in work.item:
            return None
        step = f"{work.lane}{work.n}:{work.item['task']}"
        data = await io.get(resolved_key(work.run, step))
        return None if data is None else Outcome("value", data, ended=round(time.time(), 3))

    def _not_asked(self, work: Work) -> StepMismatchError:
        return StepMismatchError(
            run_id=work.run,
            step=work.step_name,
            diff=f"\n- the step {work.item['task']} was asked for\n+ it asks for others now\n",
        )


def _with(produced: Produced, chunks: Chunks) -> Produced:
    produced.chunks = chunks.data
    if live := chunks.end():
        produced.body["live"] = live
    return produced


def _plain(value: Any) -> Any:
    """``value`` for people to read: what is no plain data, as text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in cast(dict[Any, Any], value).items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast(list[Any], value)]
    return str(value)
