"""One activity: adopt what is recorded, or do the work and record it, first writer wins.

A record is durable before anything depends on it, so a re-dispatched activity finds it and does
nothing again. A process that gets a step right after it made its plan saves the look-up: whoever
else may have got the step before, and died, does not record it that soon.

A hot chain of steps that are alone in their lane, from the begin of a run on, is pipelined: the
workflow is told of a plan while its record is on its way to the store, and the next step, in this
process, begins when the record is there. If this process dies in between, whoever gets the next
step finds no record of its plan, and does again what had come before it: it was still in flight. Or
finds the record, and sends its outbox again. The record counts, if it has another plan than the
workflow was told.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from dapr_runners.engine._attempts import Marker, is_dead, process_identity
from dapr_runners.engine._bus import Bus
from dapr_runners.engine._causes import cause_of, has_failed, step_id
from dapr_runners.engine._company import Company
from dapr_runners.engine._dead_letters import FAILED, PARKED, Letters
from dapr_runners.engine._delivery import Delivery
from dapr_runners.engine._halts import Abandons, Breaks, Parks
from dapr_runners.engine._in_flight import InFlight
from dapr_runners.engine._io import IO, Spawned
from dapr_runners.engine._items import (
    asks_about,
    commit_of,
    is_planned,
    lone_step,
    made_plan_of,
    next_fused,
)
from dapr_runners.engine._keys import (
    BROKEN,
    CANCELLED,
    attempts_key,
    end_key,
    record_key,
    resolved_key,
    spec_key,
)
from dapr_runners.engine._live_log import live_key
from dapr_runners.engine._outbox import Outbox
from dapr_runners.engine._patience import PatientIO
from dapr_runners.engine._plans_made import PlansMade
from dapr_runners.engine._poison import PoisonGuard
from dapr_runners.engine._recent import Recent
from dapr_runners.engine._together import Together
from dapr_runners.engine._watched import tell_ended, tell_lost, tell_recorded
from dapr_runners.engine._watching import watching
from dapr_runners.engine._work import (
    AGAIN,
    Adapter,
    BreaksRun,
    Json,
    Produced,
    Record,
    Work,
    unpack_record,
)
from dapr_runners.engine.errors import StepTimeoutError
from dapr_runners.state import (
    Codec,
    CorruptRecordError,
    SidecarUnreachableError,
    StateStoreError,
    is_lasting,
)

logger = logging.getLogger("dapr_runners")

_FAULT_PATIENCE = 600.0
"""Seconds a step that is done goes on trying to record itself while the store is away."""

_UNNOTICED, UNNOTICED_ALONE = 0.01, 0.5
"""Seconds of work after which it is looked whether the run was cancelled meanwhile: for a step that
wrote checkpoints, as those of the thread's next turn must come later; and for any other, which
:meth:`Runner.purge` waits for."""
_PLAN_PATIENCE = 2.0
"""Seconds to wait for a record that another process, alive as far as is seen, has on its way."""


_BROKEN_KEPT = 64

_LOOK_EVERY = 0.1
"""Seconds between two looks of a lane of many steps whether its run was cancelled."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``attempts``: how often a step may begin without coming back. ``steps``/``seconds``: how much
    one activity runs before it hands back to the workflow."""

    attempts: int = 3
    steps: int = 1
    seconds: float | None = None


class Journal:
    """Runs items of one runner and records what they produce."""

    def __init__(
        self,
        adapter: Adapter,
        codec: Codec,
        bus: Bus,
        limits: Limits,
        mark_begun: Callable[[str], None],
        company: Company,
        runner: str,
        delivery: Delivery,
        expect: Callable[[list[str]], None],
    ) -> None:
        self.company = company
        self._expect = expect
        self._runner = runner
        self._letters = Letters()
        self._outbox = Outbox(runner, delivery, self._letters)
        self._adapter = adapter
        self._codec = codec
        self._bus = bus
        self._limits = limits
        self._marker = Marker(mark_begun)
        self._identity = process_identity()
        self._guard = PoisonGuard(limits.attempts, self._identity, self._planner_of)
        self._in_flight = InFlight()
        self._on_the_way: dict[tuple[str, str], Spawned] = {}
        self._made = PlansMade()
        self._together = Together()
        self._watching = watching()
        self._broken: Recent[tuple[str, str, int], Exception] = Recent(_BROKEN_KEPT)
        """What followed a plan that the workflow was told of too early, by its record."""

    def scheduling(self, run: str) -> None:
        """This process is about to schedule ``run``."""
        self._made.scheduling(run)

    async def execute(self, item: Json, io: IO) -> Json:
        """Do ``item``, and as many fused steps after it as the limits allow."""
        try:
            outcome = await self._walk(item, io)
            if "parked" in item and outcome["k"] != "park":
                await self._letters.remove(io, item["run"], item["parked"])
            return outcome
        except BreaksRun as broken:
            return await self._break_off(Work(item), broken.error, io)
        except Exception as error:
            if not is_lasting(error):
                raise
            logger.error("run %s cannot go on: %s", item["run"], error)
            return await self._break_off(Work(item), error, io)

    async def _walk(self, item: Json, io: IO) -> Json:
        deadline = time.monotonic() + (self._limits.seconds or float("inf"))
        look_at = time.monotonic() + _LOOK_EVERY
        more = self._limits.steps if item["op"] in ("fuse", "begin", "commit") else 1
        if self._limits.seconds is not None:
            more = max(more, 1_000_000)
        before: Json | None = None
        while True:
            outcome = await self._one(Work(item), io)
            if outcome["k"] == "retry" and before is not None:
                # The workflow is to wait with this step, not with the one it has given out: told of
                # the plan, it gives this one out, and what is to be waited for is recorded.
                return before
            if item["op"] == "fuse":
                more -= 1
            if outcome["k"] == "step" and "then" in item and "step" not in item:
                item = commit_of(item, outcome)
                continue
            following = next_fused(item, outcome)
            if following is None or more <= 0 or time.monotonic() >= deadline:
                return outcome
            if item["op"] != "fuse" and self._limits.steps == 1 and self._limits.seconds is None:
                return outcome
            # A lane of many steps sees no termination from the workflow: it looks for itself.
            if time.monotonic() > look_at:
                look_at = time.monotonic() + _LOOK_EVERY
                if await self._is_off(item["run"], io):
                    return outcome
            before = outcome
            item = following if "step" not in item else asks_about(following)

    async def _one(self, work: Work, io: IO) -> Json:
        if "step" in work.item:
            # It gives up a step that may hang: it must not wait for it.
            return await self._do(work, io)
        return await self._in_flight.once((work.run, work.key), lambda: self._do(work, io), io)

    async def _do(self, work: Work, io: IO) -> Json:
        again: int = work.item.get(AGAIN, 0)
        for key in (work.item.get("at"), work.key):
            spawned = self._on_the_way.get((work.run, key)) if key is not None else None
            if spawned is not None:
                await spawned.wait(io)
            broken = None if key is None else self._broken.get((work.run, key, again))
            if broken is not None:
                raise BreaksRun(broken)
        hot = self._adapter.is_hot(work) and "step" not in work.item
        record: Record | None = None
        is_news = False
        if not self._made.is_from_here(work):
            key = record_key(work.run, work.key)
            found = await io.get_many([end_key(work.run), key])
            if found.get(end_key(work.run)) == CANCELLED:
                self._adapter.forget(work.run)
                return {"k": "end", "at": "", "status": "cancelled"}
            if key in found:
                record = self.decode(work.key, found[key], key)
                # Its maker has died in between, if it is the end.
                is_news = end_key(work.run) not in found
        elif not (hot and await self.company.is_alone(io)):
            record = await self._find(work, io)
        if record is not None:
            await io.run(lambda: self._adopt(work, record, None, io.inner))
        elif "step" in work.item and (after := await self._remaining(work, io)) > 0:
            return {"k": "wait", "after": after}
        elif not hot and "prev" in work.item:
            before = Work(made_plan_of(work.item))
            plan = await self._plan(work, io)
            if plan is None:
                return await self._walk(before.item, io)
            if not is_planned(work.item, plan.outcome):
                ended = await io.get(end_key(work.run))
                return await self._recorded(before, plan, io, ended is None)
            if plan.outbox:  # its maker may have died before it was all sent
                await io.run(lambda: self._adapter.recorded(before, plan, None, io.inner))
            return await self._perform(work, io, hot)
        else:
            return await self._perform(work, io, hot)
        return await self._recorded(work, record, io, is_news)

    async def _break_off(self, work: Work, error: Exception, io: IO) -> Json:
        """End the run with what it cannot get past, as the framework would end it."""
        outcome: Json = {"k": "end", "at": BROKEN, "status": "failed"}
        if await self._is_off(work.run, io):
            return outcome
        body: Json = {"error": self._codec.encode(error, "the error"), "artifacts": []}
        record = Record(BROKEN, outcome, body, [], [], self._identity, work.attempt)
        data = self._codec.encode_plain(record.pack(), "the end of the run")
        ours = await io.create(record_key(work.run, BROKEN), data)
        if not ours:
            found = await io.get(record_key(work.run, BROKEN))
            if found is not None:  # another step broke it off first
                record = self.decode(BROKEN, found, record_key(work.run, BROKEN))
        return await self._recorded(work, record, io, ours)

    async def _remaining(self, work: Work, io: IO) -> float:
        """Seconds that a step may go on before it is given up. They count from when it began, and
        not from when it was to begin: there may have been no worker."""
        age = self._in_flight.age((work.run, work.key))
        if work.op not in ("fuse", "step"):
            age = 0.0  # no step: but steps may follow it in the same activity
        elif age is None:
            age = await self._guard.age(work, io)
        return work.item["limit"] - age

    async def _recorded(self, work: Work, record: Record, io: IO, is_news: bool) -> Json:
        if record.outcome["k"] == "end":
            self._adapter.forget(work.run)
            letter = f"{FAILED}{record.key}"
            if (cause := record.outcome.get("cause")) is not None:
                error = self._codec.decode(record.body["error"], "the error")
                text = f"{type(error).__name__}: {error}"
                await self._post(work, letter, {**cause, "error": text}, io)
            at = end_key(work.run)
            if not await io.create(at, record.key.encode()) and await io.get(at) == CANCELLED:
                if cause is not None:
                    await self._letters.remove(io, work.run, letter)
                return record.outcome
            if is_news and (watcher := self._watching.watcher) is not None:
                told = record
                await io.run(
                    lambda: tell_ended(
                        watcher, self._runner, work.item, told, self._codec, io.inner
                    )
                )
        self._bus.publish(work.run, record)
        return record.outcome

    async def _is_off(self, run: str, io: IO) -> bool:
        """Whether ``run`` was cancelled, broken off or purged: no result counts any more."""
        found = await PatientIO(io).get_many([end_key(run), spec_key(run)])
        return end_key(run) in found or spec_key(run) not in found

    async def _sweep(self, work: Work, produced: Produced, io: IO) -> None:
        """Delete what a step wrote beside its record, which nobody will ever look for."""
        calls: list[str] = produced.body.get("calls", [])
        live = [live_key(work.key, batch) for batch in range(produced.body.get("live", 0))]
        keys = [record_key(work.run, key) for key in (*calls, *live)]
        await io.delete_many([*keys, attempts_key(work.run, work.key)])

    async def _plan(self, work: Work, io: IO) -> Record | None:
        """The record of the plan, waited for while its maker may live."""
        key = record_key(work.run, work.item["at"])
        deadline = time.monotonic() + _PLAN_PATIENCE
        while (data := await io.get(key)) is None:
            if is_dead(work.item["prev"]["by"]) or time.monotonic() > deadline:
                return None
            await io.sleep(0.02)
        return self.decode(work.item["at"], data, key)

    async def _perform(self, work: Work, io: IO, hot: bool) -> Json:
        if (watcher := self._watching.watcher) is not None:
            work.watch = watcher.watch(self._runner, work, self._identity if hot else None)
        if "step" in work.item:
            work.injected = StepTimeoutError(
                run_id=work.run, step=work.step_name, seconds=work.item["limit"]
            )
        elif not hot:
            work.injected = await self._guard.admit(work, io)
            if work.watch is not None:
                await tell_lost(work.watch, work, self._planner_of, io)
        if hot and work.op == "step":
            await self._together.arrive((work.run, work.lane, work.n))
        began = time.monotonic()
        token = self._marker.begun(attempts_key(work.run, work.key)) if hot else None
        try:
            produced = await self._produce(work, io)
        except Parks as parks:
            await self._guard.came_back(work, io)
            return await self._parked(work, parks.about, io)
        except Abandons as abandons:
            logger.warning("%s of run %s is left: %s", work.step_name, work.run, abandons.error)
            if not abandons.is_stale:
                await self._guard.came_back(work, io)
            raise abandons.error from None
        except Breaks as breaks:
            await self._guard.came_back(work, io)
            raise BreaksRun(breaks.error) from None
        except Exception:
            await self._guard.came_back(work, io)
            raise
        finally:
            if token is not None:
                token.ended = True
            self._guard.left(work)
        if produced.outcome["k"] == "none":
            return produced.outcome
        unnoticed = _UNNOTICED if produced.outbox or produced.messages else UNNOTICED_ALONE
        if time.monotonic() - began > unnoticed and await self._is_off(work.run, io):
            # Its checkpoints must not come after those of the next turn of its thread.
            self._adapter.forget(work.run)
            await self._sweep(work, produced, io)
            return produced.outcome
        if has_failed(produced):
            cause = await cause_of(work, produced, self._codec, io)
            if cause is not None:
                produced.outcome["cause"] = cause
        record = Record(
            work.key,
            produced.outcome,
            produced.body,
            produced.chunks,
            produced.outbox,
            self._identity,
            work.attempt - 1 + work.begun,
            (time.time() - (time.monotonic() - began), time.time()),
            produced.messages,
        )
        planned_elsewhere = "at" in work.item and not self._made.is_from_here(work)
        if planned_elsewhere and (pause := self.company.pause) > 0:
            # Who made the plan may not know of this process yet, and not look for the record.
            planner = await self._planner_of(work, io)
            if planner is None or not is_dead(planner):
                await io.sleep(pause)
        if record.outcome["k"] == "plan":
            self._made.add(work)
            if len(record.outcome["steps"]) > 1:
                await self._expect_steps(work, record.outcome, io)
        if hot and self._may_tell_early(work, record):
            record.outcome["by"] = self._identity
            key = (work.run, work.key)
            spawned = io.spawn(self._settle_later(work, record, produced, io))
            self._on_the_way[key] = spawned
            if spawned.done():  # before it could be found there to be taken out
                self._on_the_way.pop(key, None)
            return record.outcome
        return await self._settle(work, record, produced, io)

    async def _expect_steps(self, work: Work, plan: Json, io: IO) -> None:
        """Several steps follow ``plan``."""
        if work.item["mode"] == "sync":
            place = f"{plan['lane']}{plan['n']}"
            alone = _single_steps(plan["steps"])
            self._expect([record_key(work.run, f"{place}:{step['id']}") for step in alone])
        elif not plan.get("rolling") and await self.company.is_alone(io):
            at_once = _single_steps(plan["steps"][: plan.get("window")])
            self._together.expect((work.run, plan["lane"], plan["n"]), len(at_once))

    async def _produce(self, work: Work, io: IO) -> Produced:
        watch = work.watch
        if watch is None:
            return await io.run(lambda: self._adapter.perform(work, io.inner))
        try:
            produced = await io.run(lambda: self._adapter.perform(work, io.inner))
        except BaseException as error:
            watch.performed(None, error)
            raise
        watch.performed(produced.outcome, work.error)
        return produced

    async def _parked(self, work: Work, about: Json, io: IO) -> Json:
        """Leave a letter for who is to decide what the step waits with."""
        at = f"{PARKED}{work.key}"
        letter = {"step": work.step_name, "attempts": work.attempt - 1 + work.begun, **about}
        await self._post(work, at, letter, io)
        logger.warning("run %s is parked at %s: %s", work.run, work.step_name, about["error"])
        said = ("step", "effect", "idempotency_key")
        return {"k": "park", "about": {"at": at, **{name: letter[name] for name in said}}}

    async def _post(self, work: Work, at: str, letter: Json, io: IO) -> None:
        head = {"runner": self._runner, "run_id": work.run, "time": time.time()}
        await self._letters.post(io, work.run, at, {**head, **letter})

    def _may_tell_early(self, work: Work, record: Record) -> bool:
        one_by_one = self._limits.steps == 1 and self._limits.seconds is None
        # The lane of a subgraph begins beside others: what it depends on is not told of here.
        begins = work.op == "begin" and not work.lane
        # With messages, the workflow is to hear from this step itself what holds it up.
        return (
            one_by_one
            and (work.op == "fuse" or begins or "alone" in work.item)
            and not record.messages
            and lone_step(record.outcome) is not None
        )

    async def _settle(self, work: Work, record: Record, produced: Produced, io: IO) -> Json:
        data = self._codec.encode_plain(record.pack(), f"the record {work.key}")
        ours = await self._record(work, data, produced, io)
        if not ours:
            record = await self._must_find(work, io)
        settled, made = record, produced if ours else None
        if ours and not record.outbox and not record.messages:
            await self._adapter.recorded(work, settled, made, io.inner)
        else:
            await io.run(lambda: self._adopt(work, settled, made, io.inner))
        if ours and (watch := work.watch) is not None:
            await io.run(
                lambda: tell_recorded(watch, work, settled, len(data), self._codec, io.inner)
            )
        if AGAIN in work.item and "task" in work.item:
            await io.delete_many([resolved_key(work.run, step_id(work))])
        return await self._recorded(work, record, io, ours)

    async def _adopt(self, work: Work, record: Record, made: Produced | None, io: IO) -> None:
        """``record`` is durable: let the adapter know, and send what was recorded to be sent."""
        try:
            await self._adapter.recorded(work, record, made, io)
        finally:  # even if its run is over: the step has happened
            if record.messages:
                await self._outbox.send(work, record, io, is_new=made is not None)

    async def _settle_later(self, work: Work, record: Record, produced: Produced, io: IO) -> None:
        try:
            await self._settle(work, record, produced, io)
        except BreaksRun as broken:
            self._broken[work.run, work.key, work.item.get(AGAIN, 0)] = broken.error
            await self._break_off(work, broken.error, io)
            raise
        except Exception as error:
            logger.warning("recording %s of %s failed: %s", work.key, work.run, error)
            raise
        finally:
            self._on_the_way.pop((work.run, work.key), None)

    async def _record(self, work: Work, data: bytes, produced: Produced, io: IO) -> bool:
        give_up_at = time.monotonic() + _FAULT_PATIENCE
        pause = 0.05
        while True:
            try:
                if produced.before_record is not None:
                    await io.run(produced.before_record)
                return await io.create(record_key(work.run, work.key), data)
            except (SidecarUnreachableError, StateStoreError) as error:
                # The work is done: running it again because the store blinked would repeat its
                # effects. A create that was answered too late is found as our own record.
                if time.monotonic() > give_up_at or is_lasting(error):
                    raise
                logger.warning("recording %s of %s: %s", work.key, work.run, error)
                await io.sleep(pause)
                pause = min(pause * 2, 0.5)

    async def _find(self, work: Work, io: IO) -> Record | None:
        key = record_key(work.run, work.key)
        data = await io.get(key)
        return None if data is None else self.decode(work.key, data, key)

    async def _must_find(self, work: Work, io: IO) -> Record:
        record = await self._find(work, io)
        if record is None:
            raise CorruptRecordError(
                key=record_key(work.run, work.key), reason="it was there and is gone"
            )
        return record

    def decode(self, key: str, data: bytes, stored_under: str) -> Record:
        """The record in ``data``."""
        return unpack_record(self._codec, key, data, stored_under)

    async def _planner_of(self, work: Work, io: IO) -> str | None:
        """The process that planned the step."""
        key = record_key(work.run, work.item["at"])
        data = await io.get(key)
        return None if data is None else self.decode(work.item["at"], data, key).planner


def _single_steps(steps: list[Json]) -> list[Json]:
    """Those of ``steps`` that are single activities."""
    return [step for step in steps if not (step.get("loop") or step.get("wait"))]
