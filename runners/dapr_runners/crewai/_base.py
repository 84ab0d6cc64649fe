"""What the runners for CrewAI have in common: runs, and their results."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Literal, Self

from dapr_runners.crewai._adapter import CrewAdapter
from dapr_runners.crewai._events import run_events
from dapr_runners.crewai._programs import Program
from dapr_runners.crewai._questions import QuestionsRunner
from dapr_runners.crewai._retry import ToolRetry
from dapr_runners.crewai._tasks import freeze_task
from dapr_runners.crewai._types import Types
from dapr_runners.crewai.errors import UnsupportedCrewError
from dapr_runners.effects import DeadLetters, EffectHost
from dapr_runners.engine import (
    IO,
    MAX_VALUE_SIZE,
    Bus,
    Chunk,
    Claim,
    LiveLog,
    MultitaskStrategy,
    PubSub,
    Record,
    RunNotEndedError,
    Worker,
    digest,
    iterate_in_thread,
    run_in_thread,
    those_after,
    told_to_the_end,
)
from dapr_runners.state import StateStore

_LAST_EVENTS = ("workflow_completed", "workflow_failed")


class CrewAIRunner(QuestionsRunner):
    """What the runners of CrewAI have in common.

    ``name`` names the workflow and is part of every record: keep it over restarts. ``host`` and
    ``port`` are the sidecar's gRPC endpoint (default: as the Dapr SDK finds it), ``store_name`` its
    state store component. ``retry`` tries failed tools again. ``step_timeout`` (seconds) gives up a
    tool or an LLM call; ``max_attempts``: one that takes its worker down so often fails its run.
    ``on_mismatch``: what becomes of a run whose program asks for something else than is recorded:
    it fails ("raise"), or takes what is recorded and logs that ("accept"). ``allow_types`` are
    classes the codec may rebuild beyond those of the crew's tasks, tools and modules, and codec
    extensions. ``multitask_strategy``: what a call does while its session has an active run with
    other inputs. ``live_pubsub`` names a pub/sub component for what models say in other processes
    while they say it (default: in small batches through the state store). ``max_value_size`` (bytes
    as stored; None: any): larger values are refused.
    """

    framework = "crewai"
    _takes_answers = True
    _keyed_by = "session_id"
    _kinds: tuple[Any, ...] = ()

    def __init__(
        self,
        source: Any,
        *,
        name: str,
        max_iterations: int | None = None,
        host: str | None = None,
        port: str | int | None = None,
        store: StateStore | None = None,
        store_name: str = "statestore",
        retry: ToolRetry | None = None,
        step_timeout: float | None = None,
        retention: float | None = None,
        max_attempts: int = 3,
        on_mismatch: Literal["raise", "accept"] = "raise",
        multitask_strategy: MultitaskStrategy = "reject",
        allow_types: Iterable[Any] = (),
        live_pubsub: str | None = None,
        max_value_size: int | None = MAX_VALUE_SIZE,
        worker: Worker | None = None,
    ) -> None:
        if on_mismatch not in ("raise", "accept"):
            raise ValueError('on_mismatch must be "raise" or "accept"')
        address = f"{host or '127.0.0.1'}:{port}" if port else None
        if worker is None and address is not None:
            from dapr_runners.engine import process_worker

            worker = process_worker(address)
        self._program = Program(name, source, max_iterations=max_iterations)
        if self._program.is_ready and not isinstance(source, self._kinds):
            raise UnsupportedCrewError(
                runner=name,
                reason=f"it is a {type(source).__name__}",
                remedy="There are runners for an Agent, a Crew and a Flow: take the one for it.",
            )
        self._types = Types(allow_types, self._program.modules, max_value_size)
        retry_after = _never if retry is None else retry.pause
        bus = Bus()
        store = store or StateStore(store_name, address=address)
        pubsub = None
        if live_pubsub is not None:
            pubsub = PubSub(live_pubsub, store)
        live_log = LiveLog(store, self._types.codec, pubsub)
        adapter = CrewAdapter(
            name,
            self._program,
            self._types,
            bus=bus,
            live_log=live_log,
            wake=lambda run: self._telling.raise_event(run, "wake"),
            accepts_mismatch=on_mismatch == "accept",
            retry_after=retry_after,
            effects=EffectHost(store, self._types.codec),
        )
        self._driven = adapter
        super().__init__(
            name=name,
            adapter=adapter,
            codec=self._types.codec,
            store=store,
            bus=bus,
            pubsub=pubsub,
            live_log=live_log,
            worker=worker,
            step_timeout=step_timeout,
            retention=retention,
            max_attempts=max_attempts,
            multitask_strategy=multitask_strategy,
        )

    # -- running

    def kickoff(
        self,
        inputs: Any = None,
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        multitask_strategy: MultitaskStrategy | None = None,
        tenant_id: str | None = None,
    ) -> Any:
        """CrewAI's ``kickoff(inputs)`` as a durable run, with its result and exceptions.

        A call on a session with an active run of the same inputs attaches to it; one whose result
        no caller has received is delivered, not repeated. ``run_id`` names exactly one run.
        ``tenant_id`` makes it a call on :meth:`for_tenant`.
        """
        on = self._called_for(tenant_id)
        io = self._blocking()
        claim = run_in_thread(
            on._claim(io, "kickoff", inputs, None, session_id, run_id, multitask_strategy)
        )
        return on._wait(io, claim)

    async def akickoff(
        self,
        inputs: Any = None,
        *,
        session_id: str | None = None,
        run_id: str | None = None,
        multitask_strategy: MultitaskStrategy | None = None,
        tenant_id: str | None = None,
    ) -> Any:
        """CrewAI's ``akickoff(inputs)`` as a durable run. See :meth:`kickoff`."""
        on = self._called_for(tenant_id)
        io = self._looping()
        claim = await on._claim(
            io, "akickoff", inputs, None, session_id, run_id, multitask_strategy
        )
        return await on._await(io, claim)

    def _called_for(self, tenant_id: str | None) -> Self:
        return self if tenant_id is None else self.for_tenant(tenant_id)

    def kickoff_for_each(
        self, inputs: Sequence[Any], *, session_id: str | None = None
    ) -> list[Any]:
        """The results of a durable run for each of ``inputs``, one after the other. The runs of a
        session are those of the sessions ``{session_id}/0``, ``{session_id}/1``, ..."""
        sessions = _sessions(session_id, len(inputs))
        return [
            self.kickoff(one, session_id=session)
            for one, session in zip(inputs, sessions, strict=True)
        ]

    async def akickoff_for_each(
        self, inputs: Sequence[Any], *, session_id: str | None = None
    ) -> list[Any]:
        """Twin of :meth:`kickoff_for_each`, all at once."""
        sessions = _sessions(session_id, len(inputs))
        return await asyncio.gather(
            *(
                self.akickoff(one, session_id=session)
                for one, session in zip(inputs, sessions, strict=True)
            )
        )

    async def _events(
        self,
        inputs: Any,
        task: Any,
        session_id: str | None,
        run_id: str | None,
        strategy: MultitaskStrategy | None,
    ) -> AsyncIterator[dict[str, Any]]:
        io = self._looping()
        claim = await self._claim(io, "kickoff", inputs, task, session_id, run_id, strategy)

        if not claim.started:
            await self._telling.remind(io, claim.run)

        def follow(caught_up: Callable[[], None]) -> AsyncIterator[Chunk | Record]:
            return self._follow(io, claim.run, caught_up, live=True)

        about: dict[str, Any] = {"name": self.name, **self._about()}
        codec = lambda: self._driven.types_of(claim.run).codec  # noqa: E731
        log = run_events(follow, codec, claim, about)
        async for event in log:
            if event["type"] in _LAST_EVENTS:
                await self._delivered(io, claim)
            yield event

    async def events(
        self,
        run_id: str | None = None,
        *,
        session_id: str | None = None,
        after: str | None = None,
        follow: bool = True,
    ) -> AsyncIterator[dict[str, Any]]:
        """The events of a run that was started before, as ``run_async`` yields them: to its end or,
        without ``follow``, as far as it is; those that follow the one with the id ``after``, if
        given. Its result stays to be delivered."""
        io = self._looping()
        run = await asyncio.to_thread(self._resolve, run_id, session_id)
        spec = await self._spec_of(io, run)

        def log(caught_up: Callable[[], None]) -> AsyncIterator[Chunk | Record]:
            return self._follow(io, run, caught_up, live=follow, on=follow)

        claim = Claim(run, spec.get("thread"), started=False)
        about: dict[str, Any] = {"name": self.name, **self._about()}
        events = run_events(log, lambda: self._driven.types_of(run).codec, claim, about)
        async for event in those_after(told_to_the_end(events, run), after, run):
            yield event

    def _about(self) -> dict[str, Any]:
        return {}

    async def _claim(
        self,
        io: IO,
        how: str,
        inputs: Any,
        task: Any,
        session_id: str | None,
        run_id: str | None,
        strategy: MultitaskStrategy | None,
    ) -> Claim:
        self._require_started()
        if task is not None:
            models = (task.output_pydantic, task.output_json, task.response_model)
            self._types.learn(*(model for model in models if model is not None))
            task = freeze_task(task, self.name, self._types.codec)
        packed = self._types.codec.encode(inputs, "inputs")
        return await self._open(
            io,
            thread=session_id,
            fingerprint=digest(
                how, packed.hex(), (task or b"").hex(), *([self._tenant] if self._tenant else [])
            ),
            spec={"how": how, "inputs": packed, "task": task, "tenant": self._tenant or ""},
            mode="sync",
            wanted=run_id,
            strategy=strategy,
            before_schedule=lambda _run: None,
        )

    def dead_letters(self) -> DeadLetters:
        """What waits for somebody's decision among the runs of this runner."""
        return DeadLetters(
            runner=self.name,
            tenant=self._tenant,
            store=self.store,
            codec=self._codec,
            worker=self._worker,
        )

    # -- results

    def result(self, session_id: str | None = None, *, run_id: str | None = None) -> Any:
        """The result of a run, by its id or as the newest of a session. Raises what it failed with,
        and :class:`RunNotEndedError` while it goes on."""
        run = self._resolve(run_id, session_id)
        end = run_in_thread(self._recorded_end(self._blocking(), run))
        if end is None:
            raise RunNotEndedError(run_id=run)
        return self._result_in(run, end)

    def resume(self, session_id: str | None = None, *, run_id: str | None = None) -> Any:
        """The result of a run that was started before, waited for. What a dead process left behind
        goes on wherever a runner of this name has started."""
        self._require_started()
        return self._wait(
            self._blocking(), Claim(self._resolve(run_id, session_id), session_id, False)
        )

    async def aresume(self, session_id: str | None = None, *, run_id: str | None = None) -> Any:
        """Twin of :meth:`resume`."""
        self._require_started()
        run = await asyncio.to_thread(self._resolve, run_id, session_id)
        return await self._await(self._looping(), Claim(run, session_id, False))

    async def _recorded_end(self, io: IO, run: str) -> Record | None:
        end = await self._end_of(io, run)
        if end is None:
            await self._spec_of(io, run)  # raises when there is no such run
            await self._telling.remind(io, run)
        return end

    def _wait(self, io: IO, claim: Claim) -> Any:
        if not claim.started:
            run_in_thread(self._telling.remind(io, claim.run))
        end: Record | None = None
        for event in iterate_in_thread(self._follow(io, claim.run)):
            if isinstance(event, Record) and event.outcome["k"] == "end":
                end = event
        assert end is not None
        run_in_thread(self._delivered(io, claim))
        return self._result_in(claim.run, end)

    async def _await(self, io: IO, claim: Claim) -> Any:
        if not claim.started:
            await self._telling.remind(io, claim.run)
        end: Record | None = None
        async for event in self._follow(io, claim.run):
            if isinstance(event, Record) and event.outcome["k"] == "end":
                end = event
        assert end is not None
        await self._delivered(io, claim)
        return self._result_in(claim.run, end)

    def _result_in(self, run: str, end: Record) -> Any:
        codec = self._driven.types_of(run).codec
        if (data := end.body.get("error")) is not None:
            raise codec.decode(data, f"the error of {end.key}")
        return codec.decode(end.body["result"], f"the result of {end.key}")


def _sessions(session_id: str | None, count: int) -> list[str | None]:
    return [None if session_id is None else f"{session_id}/{number}" for number in range(count)]


def _never(_tool: str, _error: BaseException, _attempt: int, _age: float) -> float | None:
    return None
