"""The runner for LangGraph graphs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, nullcontext, suppress
from typing import Any, Literal, Self, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.pregel import Pregel

from dapr_runners.effects import DeadLetters
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
    Runner,
    RunNotFoundError,
    StepTimeoutError,
    Worker,
    digest,
    iterate_in_thread,
    run_in_thread,
)
from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._adapter import GraphAdapter
from dapr_runners.langgraph._answers import leave_answers
from dapr_runners.langgraph._events import is_asked, run_events
from dapr_runners.langgraph._facade import LAST_ONLY, durable_copy
from dapr_runners.langgraph._insight import logged_events
from dapr_runners.langgraph._last_chunks import LastChunks
from dapr_runners.langgraph._retry import StepRetry
from dapr_runners.langgraph._savers import Savers
from dapr_runners.langgraph._specs import Call, Extras, split_config
from dapr_runners.langgraph._types import codec_for
from dapr_runners.langgraph._views import asks, modes_of, view, with_modes
from dapr_runners.langgraph.errors import GraphChangedError, UnsupportedGraphError
from dapr_runners.state import StateStore

_DEFAULTS: dict[str, Any] = {
    "stream_mode": None,
    "print_mode": (),
    "output_keys": None,
    "interrupt_before": None,
    "interrupt_after": None,
    "durability": None,
    "subgraphs": False,
    "debug": None,
    "version": "v1",
}
"""Arguments of ``Pregel.stream`` that are recorded with a run, and what it has without them."""

_LAST_EVENTS = ("workflow_completed", "workflow_failed", "workflow_interrupted")
_OF_EVERY_RUN = ("updates", "values")
"""Stream modes that tell what a run of :meth:`run_async` asked, and what came of it."""

_TENANT = "tenant_id"
"""Name of the tenant in the configurable part of a config."""
_LEAVING_PATIENCE = 2.0
"""Seconds that a caller who leaves at an interrupt waits for its run to end."""


class DaprWorkflowGraphRunner(Runner):
    """Runs a compiled graph (StateGraph, functional API, prebuilt agent) on Dapr Workflow. The
    graph is used as it is and not changed.

    ``name`` names the workflow and is part of every record: keep it over restarts. ``max_steps``
    is the recursion limit of calls that give none. ``host`` and ``port`` are the sidecar's gRPC
    endpoint (default: as the Dapr SDK finds it), ``store_name`` its state store component.
    ``retry`` retries nodes that have no RetryPolicy. ``step_timeout`` (seconds) gives a node up.
    ``max_attempts``: a node that takes its worker down so often fails its run.
    ``steps_per_activity`` runs that many supersteps in one activity, each recorded before the next
    (the fast lane); ``seconds_per_activity`` bounds it by time instead. ``allow_types`` are classes
    the codec may rebuild beyond those of the graph's schemas and modules, and codec extensions.
    ``artifact_limit`` (bytes): larger values are stored once, by content hash.
    ``max_value_size`` (bytes as stored; None: any): larger values are refused.
    ``multitask_strategy``: what a call does while its thread has an active run with another input.
    ``on_disconnect``: what becomes of a run whose caller closes the stream or is cancelled. It goes
    on ("continue"), and a call with the same input attaches to it; or it is cancelled with its
    asynchronous nodes ("cancel"), as without the runner. A caller that dies cancels nothing.
    ``on_saver_error``: what an exception of the graph's own checkpointer does. It fails the run, as
    without the runner ("raise"), and the thread goes on from the last checkpoint that was saved; or
    what is recorded is sent again, with growing pauses, for some minutes ("retry").
    ``live_pubsub`` names a pub/sub component for tokens and custom events of steps that run in
    other processes (default: in small batches through the state store). ``record_answers``: a node
    that runs again because its worker was lost gets what chat models have answered it before.

    LangGraph's own methods (``invoke``, ``stream``, ``batch``, ``get_state``, ``update_state``, ...
    and their async twins) have LangGraph's arguments, results and exceptions. A thread is
    ``config["configurable"]["thread_id"]``; ``["tenant_id"]`` beside it makes it a call on
    :meth:`for_tenant`. A graph compiled without a checkpointer gets a
    :class:`DaprSaver` for calls with a thread; compile with ``checkpointer=False`` to keep it off.
    """

    framework = "langgraph"

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        *,
        name: str,
        max_steps: int | None = None,
        host: str | None = None,
        port: str | int | None = None,
        role: str | None = None,
        goal: str | None = None,
        store: StateStore | None = None,
        store_name: str = "statestore",
        retry: StepRetry | None = None,
        step_timeout: float | None = None,
        retention: float | None = None,
        max_attempts: int = 3,
        steps_per_activity: int = 1,
        seconds_per_activity: float | None = None,
        multitask_strategy: MultitaskStrategy = "reject",
        on_disconnect: Literal["continue", "cancel"] = "continue",
        on_saver_error: Literal["raise", "retry"] = "raise",
        allow_types: Iterable[Any] = (),
        artifact_limit: int = 65_536,
        max_value_size: int | None = MAX_VALUE_SIZE,
        live_pubsub: str | None = None,
        record_answers: bool = True,
        worker: Worker | None = None,
    ) -> None:
        if not isinstance(graph, Pregel):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UnsupportedGraphError(
                runner=name,
                reason=f"it is a {type(graph).__name__}, not a compiled graph",
                remedy="Pass what StateGraph.compile() or @entrypoint returns.",
            )
        address = f"{host or '127.0.0.1'}:{port}" if port else None
        if worker is None and address is not None:
            from dapr_runners.engine import process_worker

            worker = process_worker(address)
        self.graph = graph
        self.role, self.goal = role, goal
        self._max_steps = max_steps
        self._on_disconnect = on_disconnect
        self._store_name = store_name
        codec = codec_for(graph, allow_types, max_value_size)
        store = store or StateStore(store_name, address=address)
        bus = Bus()
        retry_after = _never if retry is None else retry.pause
        self._savers = Savers(name, graph, store)
        pubsub = None
        if live_pubsub is not None:
            pubsub = PubSub(live_pubsub, store)
        live_log = LiveLog(store, codec, pubsub)
        self._lender = GraphAdapter(
            name,
            graph,
            codec,
            store,
            bus,
            saver=self._savers.of,
            retry_after=lambda _node, error, attempt, age: retry_after(error, attempt, age),
            artifact_limit=artifact_limit,
            live_log=live_log,
            on_saver_error=on_saver_error,
            records_answers=record_answers,
        )
        super().__init__(
            name=name,
            adapter=self._lender,
            codec=codec,
            store=store,
            bus=bus,
            worker=worker,
            pubsub=pubsub,
            live_log=live_log,
            step_timeout=step_timeout,
            retention=retention,
            max_attempts=max_attempts,
            steps_per_activity=steps_per_activity,
            seconds_per_activity=seconds_per_activity,
            multitask_strategy=multitask_strategy,
        )
        self._bind()

    def _unknown_step(self, run: str, step: str) -> Exception:
        return GraphChangedError(run_id=run, runner=self.name, node=step)

    def shutdown(self) -> None:
        super().shutdown()
        leave_answers()

    # -- tenants

    def _bind(self) -> None:
        has_none = cast(Any, self.graph).checkpointer is False
        saver = False if has_none else self._savers.of(self._mark)
        self.durable: Any = durable_copy(self.graph, self, saver)

    def _called_with(self, config: Any) -> Self:
        """The runner of the tenant that ``config`` names, if it names one."""
        whole: Any = lg.ensure_config(cast(Any, self.graph).config, config)
        tenant = whole[lg.CONF].get(_TENANT)
        return self if tenant is None else self.for_tenant(str(tenant))

    def for_another_tenant(self, config: Any) -> Any:
        """:attr:`durable` for the tenant that ``config`` names, if that is not this runner's."""
        runner = self._called_with(config)
        return None if runner is self else runner.durable

    # -- calls

    def _prepare(self, input: Any, config: Any, arguments: dict[str, Any]) -> tuple[Call, Extras]:
        unknown = arguments.keys() - _DEFAULTS.keys() - {"context", "control", "checkpoint_during"}
        if unknown:
            raise TypeError(f"stream() got unexpected keyword arguments {sorted(unknown)}")
        kept, extras = split_config(dict(config or {}))
        extras.control = arguments.get("control")
        if self._max_steps is not None:
            kept.setdefault("recursion_limit", self._max_steps)
        own = cast(Any, self.graph).checkpointer
        # With what the graph is bound to, and what a LangChain runnable around the call passes on.
        merged: Any = lg.ensure_config(cast(Any, self.graph).config, config)
        if self._tenant is not None:
            merged[lg.CONF] = {**merged[lg.CONF], _TENANT: self._tenant}
        if merged[lg.CONF]:
            kept[lg.CONF] = merged[lg.CONF]
        has_thread = _thread_of(kept) is not None
        saver = isinstance(own, BaseCheckpointSaver) or (own is not False and has_thread)
        recorded = {
            key: _plain(value)
            for key, value in arguments.items()
            if key not in ("context", "control") and value != _DEFAULTS.get(key)
        }
        context = arguments.get("context")
        return Call(input, kept, recorded, context is not None, context, saver), extras

    async def _claim(
        self,
        io: IO,
        call: Call,
        extras: Extras,
        mode: str,
        run_id: str | None = None,
        strategy: MultitaskStrategy | None = None,
    ) -> Claim:
        self._require_started()
        packed = extras.spec = call.pack(self._codec)
        return await self._open(
            io,
            thread=_thread_of(call.config),
            fingerprint=call.fingerprint(self._codec, packed),
            spec={**packed, "stream_mode": self.graph.stream_mode},
            mode=mode,
            wanted=run_id,
            strategy=strategy,
            before_schedule=lambda run: self._lend(run, extras),
        )

    def _lend(self, run: str, extras: Extras) -> None:
        extras.ending.attend()
        self._lender.lend(run, extras)

    async def _arguments_of(self, io: IO, claim: Claim, call: Call) -> dict[str, Any]:
        """The arguments of the call that started the run, which may not be ``call``."""
        if claim.started:
            return call.arguments
        spec = await self._spec_of(io, claim.run)
        return Call.unpack(self._codec, spec, claim.run).arguments

    async def _chunks(self, io: IO, claim: Claim, call: Call) -> AsyncGenerator[Any]:
        """The stream chunks of a run; raises what it failed with."""
        recorded = await self._arguments_of(io, claim, call)
        show = view(claim.run, recorded, call.arguments, self.graph.stream_mode)
        async for event in self._follow(io, claim.run, live=call.is_live(self.graph)):
            if isinstance(event, Record):
                if event.outcome["k"] == "end":
                    await self._delivered(io, claim)
                    self._raise_failure(event)
            else:
                raw = self._codec.decode(event.data, event.id)
                is_handed = event.is_last or asks(raw, recorded, self.graph.stream_mode)
                for chunk in show(raw):
                    with self._turns.handing_over(claim.run) if is_handed else nullcontext():
                        yield chunk

    async def _last_chunks(self, io: IO, claim: Claim, call: Call) -> AsyncGenerator[Any]:
        """Those of :meth:`_chunks` that ``invoke`` makes its result of; raises what the run failed
        with."""
        recorded = await self._arguments_of(io, claim, call)
        show = view(claim.run, recorded, call.arguments, self.graph.stream_mode)
        last = LastChunks(self._codec, show)
        async for event in self._follow(io, claim.run, end_only=True):
            if isinstance(event, Chunk):
                last.add(event)
            elif event.outcome["k"] == "end":
                if "error" not in event.body:
                    for chunk in last.take():
                        with self._turns.handing_over(claim.run):
                            yield chunk
                await self._delivered(io, claim)
                self._raise_failure(event)

    def _raise_failure(self, end: Record) -> None:
        if (data := end.body.get("error")) is not None:
            error = self._codec.decode(data, f"the error of {end.key}")
            raise error

    async def _left(self, io: IO, claim: Claim) -> None:
        """The caller of ``claim`` listens no longer."""
        await self._left_with_all(io, claim)
        if self._on_disconnect == "cancel" and claim.started:
            with suppress(RunNotFoundError):
                await self._cancel(io, claim.run)

    async def _left_with_all(self, io: IO, claim: Claim) -> None:
        """If the caller, who left, had what it wanted: tell the next ones, and let the run end, as
        the caller may look at its state now."""
        if self._turns.is_received(claim.run):
            await self._delivered(io, claim)
            await self._turns.over(io, claim.run, _LEAVING_PATIENCE)

    # -- LangGraph's methods

    def stream(self, input: Any, config: Any = None, **arguments: Any) -> Iterator[Any]:
        """``Pregel.stream``, as a durable run."""
        return self._called_with(config)._stream(input, config, arguments)

    def _stream(self, input: Any, config: Any, arguments: dict[str, Any]) -> Iterator[Any]:
        io = self._blocking()
        chunks = self._last_chunks if arguments.pop(LAST_ONLY, False) else self._chunks
        call, extras = self._prepare(input, config, arguments)
        claim = run_in_thread(self._claim(io, call, extras, "sync"))
        try:
            yield from iterate_in_thread(chunks(io, claim, call))
        except (GeneratorExit, KeyboardInterrupt):
            run_in_thread(self._left(io, claim))
            raise
        finally:
            for last in extras.ending.take():
                last()

    def astream(self, input: Any, config: Any = None, **arguments: Any) -> AsyncIterator[Any]:
        """``Pregel.astream``, as a durable run."""
        return self._called_with(config)._astream(input, config, arguments)

    async def _astream(
        self, input: Any, config: Any, arguments: dict[str, Any]
    ) -> AsyncIterator[Any]:
        io = self._looping()
        chunks_of = self._last_chunks if arguments.pop(LAST_ONLY, False) else self._chunks
        call, extras = self._prepare(input, config, arguments)
        claim = await self._claim(io, call, extras, "async")
        try:
            async with aclosing(chunks_of(io, claim, call)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (GeneratorExit, asyncio.CancelledError):
            await self._left(io, claim)
            await self._worker.on_loop(self._lender.ended_here(claim.run))
            raise
        finally:
            for last in extras.ending.take():
                await last()

    def invoke(self, input: Any, config: Any = None, **arguments: Any) -> Any:
        """``Pregel.invoke``, as a durable run. ``thread_id=`` is short for the config entry."""
        return self.durable.invoke(input, _with_thread(config, arguments), **arguments)

    async def ainvoke(self, input: Any, config: Any = None, **arguments: Any) -> Any:
        """``Pregel.ainvoke``, as a durable run."""
        return await self.durable.ainvoke(input, _with_thread(config, arguments), **arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "durable" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.durable, name)

    # -- runs

    def dead_letters(self) -> DeadLetters:
        """What waits for somebody's decision among the runs of this runner."""
        return DeadLetters(
            runner=self.name,
            tenant=self._tenant,
            store=self.store,
            codec=self._codec,
            worker=self._worker,
        )

    def run_async(
        self,
        input: Any,
        *,
        thread_id: str | None = None,
        config: Any = None,
        workflow_id: str | None = None,
        run_id: str | None = None,
        multitask_strategy: MultitaskStrategy | None = None,
        poll_interval: float | None = None,
        **arguments: Any,
    ) -> AsyncIterator[dict[str, Any]]:
        """Run to the end, yielding events (dicts with ``type``; see ``_events``). A call on a
        thread with an active run and the same input attaches to it and sees all its events.
        ``run_id`` (or ``workflow_id``) names exactly one run for ever. ``poll_interval`` is
        accepted and not needed."""
        merged: dict[str, Any] = dict(config or {})
        if thread_id is not None:
            merged["configurable"] = {**(merged.get("configurable") or {}), "thread_id": thread_id}
        wanted = run_id if run_id is not None else workflow_id
        on = self._called_with(merged)
        return on._run_async(input, merged, wanted, multitask_strategy, arguments)

    async def _run_async(
        self,
        input: Any,
        config: dict[str, Any],
        wanted: str | None,
        strategy: MultitaskStrategy | None,
        arguments: dict[str, Any],
    ) -> AsyncIterator[dict[str, Any]]:
        io = self._looping()
        default: str = self.graph.stream_mode
        if arguments.get("stream_mode") is None:
            arguments["stream_mode"] = list(_OF_EVERY_RUN)
        shown_modes = modes_of(arguments, default)
        arguments = with_modes(arguments, default, _OF_EVERY_RUN)
        call, extras = self._prepare(input, config, arguments)
        claim = await self._claim(io, call, extras, "async", wanted, strategy)
        recorded = await self._arguments_of(io, claim, call)
        view(claim.run, recorded, call.arguments, default)

        def follow(caught_up: Callable[[], None]) -> AsyncIterator[Chunk | Record]:
            return self._follow(io, claim.run, caught_up, call.is_live(self.graph))

        log = run_events(follow, self._codec, self.name, claim, recorded, shown_modes)
        try:
            async for event in log:
                if event["type"] in _LAST_EVENTS:
                    await self._delivered(io, claim)
                with self._turns.handing_over(claim.run) if is_asked(event) else nullcontext():
                    yield event
        except (GeneratorExit, asyncio.CancelledError):
            await self._left_with_all(io, claim)
            raise
        finally:
            for last in extras.ending.take():
                await last()

    async def events(
        self,
        run_id: str | None = None,
        *,
        thread_id: str | None = None,
        after: str | None = None,
        follow: bool = True,
    ) -> AsyncIterator[dict[str, Any]]:
        """The events of a run that was started before, as :meth:`run_async` yields them: to its end
        or, without ``follow``, as far as it is; those that follow the one with the id ``after``, if
        given. Its result stays to be delivered."""
        io = self._looping()
        run = await asyncio.to_thread(self._resolve, run_id, thread_id)
        spec = await self._spec_of(io, run)

        def log(caught_up: Callable[[], None]) -> AsyncIterator[Chunk | Record]:
            return self._follow(io, run, caught_up, live=follow, on=follow)

        claim = Claim(run, spec.get("thread"), started=False)
        async for event in logged_events(log, self._codec, self.name, claim, spec, after):
            yield event


def _never(_error: BaseException, _attempt: int, _age: float) -> float | None:
    return None


def _thread_of(config: dict[str, Any]) -> str | None:
    conf: dict[str, Any] = config.get("configurable") or {}
    thread = conf.get("thread_id")
    return None if thread is None else str(thread)


def _with_thread(config: Any, arguments: dict[str, Any]) -> Any:
    thread = arguments.pop("thread_id", None)
    if thread is None:
        return config
    merged = dict(config or {})
    merged["configurable"] = {**(merged.get("configurable") or {}), "thread_id": thread}
    return merged


def _plain(value: Any) -> Any:
    return sorted(cast(set[Any], value)) if isinstance(value, (set, frozenset)) else value


__all__ = ["DaprWorkflowGraphRunner", "StepTimeoutError", "digest"]
