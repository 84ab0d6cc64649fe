"""What the runners of all frameworks have in common: life, runs, and their results."""

import asyncio
import copy
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, get_args

from dapr_runners.engine._answers import Answers
from dapr_runners.engine._attempts import process_identity
from dapr_runners.engine._bus import Bus, Cancelled
from dapr_runners.engine._company import Company
from dapr_runners.engine._control import Control
from dapr_runners.engine._dead_letters import Letters
from dapr_runners.engine._delivery import Delivery
from dapr_runners.engine._ending import settled
from dapr_runners.engine._following import raise_broken, raise_parked
from dapr_runners.engine._io import IO, BlockingIO, LoopIO, run_in_thread
from dapr_runners.engine._journal import Journal, Limits
from dapr_runners.engine._keys import (
    digest,
    end_key,
    is_run_id,
    is_text,
    longest_run_id,
    own_run_id,
    spec_key,
)
from dapr_runners.engine._live_log import LiveLog
from dapr_runners.engine._patience import ASKING, PatientIO
from dapr_runners.engine._poison import begun_mark
from dapr_runners.engine._pubsub import PubSub
from dapr_runners.engine._purging import Purge, end_of
from dapr_runners.engine._reader import Chunk, Reader
from dapr_runners.engine._recent import Recent
from dapr_runners.engine._retention import Retention, retaining
from dapr_runners.engine._rounds import Rounds
from dapr_runners.engine._serve import GRACE_SECONDS, serve
from dapr_runners.engine._telling import Telling
from dapr_runners.engine._tenants import check_runner_name, tenant_mark, within
from dapr_runners.engine._turns import (
    Claim,
    MultitaskStrategy,
    Progress,
    Turns,
    pack_spec,
    unpack_spec,
)
from dapr_runners.engine._unscheduled import list_unscheduled
from dapr_runners.engine._untold import Lookout
from dapr_runners.engine._watched import tell_answered, tell_cancelled
from dapr_runners.engine._watching import watching
from dapr_runners.engine._work import ANY_NAME, Adapter, Json, Record
from dapr_runners.engine._worker import Worker, default_worker
from dapr_runners.engine.errors import (
    InvalidOptionError,
    InvalidRunIdError,
    InvalidThreadIdError,
    RunnerNotStartedError,
    RunNotFoundError,
    TenantMismatchError,
    UnknownStepError,
)
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import (
    Codec,
    StateStore,
)

logger = logging.getLogger("dapr_runners")
MAX_VALUE_SIZE = 256 << 20
"""Bytes that a value may have as it is stored, unless the runner says otherwise."""
_ENDING = 2.0
"""Seconds that the workflow of a run that has ended is given to end too."""
_VIEWS = 256
"""Tenants for which a process keeps what :meth:`Runner.for_tenant` gives."""


@dataclass(slots=True)
class _Life:
    """How far a runner is, and what it is for its tenants, which share its life."""

    started: bool = False
    connected: bool = False
    registered: bool = False
    views: Recent[str, Any] = field(default_factory=lambda: Recent(_VIEWS))


class Runner:
    """Base of the runners. ``name`` is what its workflow, activities and recorded runs go by, so
    it must stay the same over restarts and be its own in a process.

    ``store`` is the state store (default: the component ``statestore`` of the sidecar the
    environment names); ``step_timeout`` gives up a step after that many seconds; ``retention``
    purges runs that many seconds after they have ended, unless they are still wanted;
    ``max_attempts`` is how often a step may take its worker down; ``steps_per_activity`` (a number,
    or seconds as a float with ``seconds_per_activity``) runs several steps in one activity, each
    recorded before the next.
    """

    framework = ""
    _takes_answers = False
    """Whether runs wait for answers (:meth:`_answer`)."""
    _keyed_by = "thread_id"
    """What callers name a thread by."""

    def __init__(
        self,
        *,
        name: str,
        adapter: Adapter,
        codec: Codec,
        store: StateStore,
        bus: Bus,
        worker: Worker | None = None,
        step_timeout: float | None = None,
        retention: float | None = None,
        max_attempts: int = 3,
        steps_per_activity: int = 1,
        seconds_per_activity: float | None = None,
        multitask_strategy: MultitaskStrategy = "reject",
        pubsub: PubSub | None = None,
        live_log: LiveLog | None = None,
    ) -> None:
        check_runner_name(name)
        self.name = name
        self._tenant: str | None = None
        self._mark = ""
        if multitask_strategy not in get_args(MultitaskStrategy):
            raise InvalidOptionError(
                runner=name,
                option="multitask_strategy",
                value=multitask_strategy,
                wanted="'reject', 'enqueue' or 'interrupt'",
            )
        for option, seconds in (("retention", retention), ("step_timeout", step_timeout)):
            if seconds is not None and not _is_time(seconds):
                raise InvalidOptionError(
                    runner=name, option=option, value=seconds, wanted="seconds, more than 0"
                )
        self._live_log = live_log
        self.store = store
        self._codec = codec
        self._adapter = adapter
        self._bus = bus
        self._pubsub = pubsub
        self._worker = worker or default_worker()
        self._step_timeout = step_timeout
        self._is_fast = steps_per_activity > 1 or seconds_per_activity is not None
        self._strategy: MultitaskStrategy = multitask_strategy
        self._life = _Life()
        self._turns = Turns(
            name, codec, lambda: self._worker.client, self._base, waits=self._waits_for_a_worker
        )
        self._journal = Journal(
            adapter,
            codec,
            bus,
            Limits(max_attempts, steps_per_activity, seconds_per_activity),
            self._mark_begun,
            Company(name),
            name,
            Delivery(store),
            store.expect,
        )
        self._letters = Letters()
        self._telling = Telling(name, lambda: self._worker.client, self._turns)
        self._retention = None if retention is None else self._retained(retention)
        self._lookout = Lookout(
            lambda: run_in_thread(
                self._telling.remind(
                    PatientIO(BlockingIO(store), seconds=0.0), works=self._life.started
                )
            ),
            for_good=self._takes_answers,
        )
        self._register()

    def _waits_for_a_worker(self, run: str, mode: str) -> bool:
        """Whether that is what ``run`` waits for. It is recorded, and who started it may be gone
        when a worker comes: whoever does finds it on the list of what workflows were not told
        of."""
        if self._life.started:
            return False
        try:
            run_in_thread(list_unscheduled(self._blocking(), self.name, run, mode))
        except DaprRunnersError as error:
            logger.warning("run %s begins only if this call goes on to wait: %s", run, error)
        return True

    # -- tenants

    @property
    def tenant(self) -> str | None:
        """Whose runs these are: see :meth:`for_tenant`. None: those of no tenant."""
        return self._tenant

    def for_tenant(self, tenant: str) -> Self:
        """This runner for ``tenant`` alone: all that it starts is under the tenant, and it finds
        nothing of another's, nor of no tenant's, whatever ids it is asked for. It has this runner's
        life: what starts or shuts down one does so for all. Cheap: make it for each request.

        Raises :class:`InvalidTenantError`, and :class:`TenantMismatchError` on the runner of
        another tenant.
        """
        if self._tenant is not None:
            if self._tenant != tenant:
                raise TenantMismatchError(runner=self.name, tenant=self._tenant, named=tenant)
            return self
        view: Self | None = self._life.views.get(tenant)
        if view is None:
            view = copy.copy(self)
            view._tenant, view._mark = tenant, tenant_mark(tenant)
            view._turns = self._turns.of(view._mark)
            view._bind()
            self._life.views[tenant] = view
        return view

    def _bind(self) -> None:
        """This copy was made for one tenant."""

    def _named(self, run_id: str) -> str:
        """The run that ``run_id`` names here. Raises RunNotFoundError if that cannot be one."""
        run = within(self._mark, run_id)
        if run is None or not is_run_id(run):
            raise RunNotFoundError(run_id=run_id)
        return run

    # -- life

    @property
    def is_running(self) -> bool:
        """Whether this process works on runs of this runner."""
        return self._life.started

    def start(self) -> None:
        """Begin to work: on new runs, and on what a dead process left behind. Idempotent."""
        if not self._life.started:
            self._register()
            if self._live_log is not None:
                self._live_log.open()
            self._worker.start()
            self._life.started = True
            self._look_out()
            if self._retention is not None:
                self._retention.begin()

    def connect(self) -> None:
        """Be a caller only: start, follow, answer and cancel runs here, while processes that have
        called :meth:`start` on a runner of this name do the work. Idempotent.

        A process that has started any other runner of the same sidecar works for this one too.
        """
        if not (self._life.started or self._life.connected):
            self._register()
            self._worker.connect()
            self._life.connected = True
            self._look_out()

    def shutdown(self) -> None:
        """Stop working and calling. Runs that are not finished go on when a worker is there
        again."""
        self._lookout.end()
        if self._retention is not None:
            self._retention.end()
        if self._life.connected:
            self._life.connected = False
            self._worker.disconnect()
        if self._life.started:
            self._life.started = False
            self._worker.stop()
        self._worker.unregister(self.name, self._journal)
        self._life.registered = False
        if self._live_log is not None:
            self._live_log.close()

    def serve(self, *, grace: float = GRACE_SECONDS) -> None:
        """Be a worker program: :func:`dapr_runners.engine.serve` with this runner alone."""
        serve(self, grace=grace)

    @property
    def worker(self) -> Worker:
        """The worker of this process that works on its runs."""
        return self._worker

    def __enter__(self) -> Self:
        """Start; the end of the ``with`` block shuts down."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.shutdown()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.shutdown)

    def _look_out(self) -> None:
        if self._takes_answers or self._life.started:
            self._lookout.begin()

    def _register(self) -> None:
        if not self._life.registered:
            names = list(self._adapter.activity_names())
            self._worker.register(self.name, self._journal, self.store, names)
            self._life.registered = True

    def _require_started(self) -> None:
        if not (self._life.started or self._life.connected):
            raise RunnerNotStartedError(runner=self.name)

    def _base(self, run: str, mode: str) -> Json:
        base: Json = {"run": run, "mode": mode}
        if self._step_timeout is not None:
            base["limit"] = self._step_timeout
            base["fast"] = self._is_fast
        if (watcher := watching().watcher) is not None:
            base["trace"] = watcher.scheduling(self.name)
        return base

    def _mark_begun(self, key: str) -> None:
        try:
            run_in_thread(self._blocking().create(key, begun_mark(1, process_identity())))
        except DaprRunnersError as error:
            # The step itself goes on, and finds out by itself whether the store is back.
            logger.warning("marking %s as begun: %s", key, error)

    # -- runs

    async def _open(
        self,
        io: IO,
        *,
        thread: str | None,
        fingerprint: str,
        spec: Json,
        mode: str,
        wanted: str | None,
        strategy: MultitaskStrategy | None,
        before_schedule: Callable[[str], None],
    ) -> Claim:
        self._require_started()
        if wanted is not None:
            run = within(self._mark, wanted)
            # Empty is no name, though it might be one with a mark.
            if not wanted or run is None or not is_run_id(run):
                raise InvalidRunIdError(run_id=wanted, longest=longest_run_id(self._mark))
            wanted = run
        if thread is not None and not is_text(thread):
            raise InvalidThreadIdError(thread=thread)
        fingerprint = digest(self.name, fingerprint)
        about = {"thread": thread, "runner": self.name, "framework": self.framework}
        spec = {**spec, **about}
        if self._tenant is not None:
            spec["tenant"] = self._tenant
        packed = pack_spec(self._codec, fingerprint, spec)
        lend = before_schedule if self._worker.is_working else _nothing

        def before(run: str) -> None:
            self._journal.scheduling(run)
            lend(run)

        if thread is None:
            run = wanted or own_run_id(self.name, self._mark)
            return await self._turns.start_unthreaded(
                io,
                run=run,
                fingerprint=fingerprint,
                spec=packed,
                mode=mode,
                before_schedule=before,
            )
        return await self._turns.claim(
            io,
            thread=thread,
            fingerprint=fingerprint,
            spec=packed,
            mode=mode,
            strategy=strategy or self._strategy,
            cancel=self._cancel_run,
            wanted=wanted,
            before_schedule=before,
        )

    async def _follow(
        self,
        io: IO,
        run: str,
        caught_up: Callable[[], None] = lambda: None,
        live: bool = False,
        on: bool = True,
        end_only: bool = False,
    ) -> AsyncIterator[Chunk | Record]:
        """The events of ``run``; raises when it ended without a result. ``caught_up`` is called
        after the events that were recorded before; ``live`` says that the run has chunks worth
        looking for before their step is recorded. Waits for a sidecar that goes away. If not
        ``on``, those there are right now. ``end_only``: the caller does nothing before the end."""
        io = PatientIO(io, self._worker.address)

        async def is_alone() -> bool:
            return self._life.started and await self._journal.company.is_alone(io)

        reader = Reader(
            run,
            self._bus,
            io,
            self._journal.decode,
            lambda r: self._turns.progress(io, r, self._refuse_to_wait),
            caught_up,
            self._codec if live else None,
            self._pubsub,
            works_here=self._life.started,
            end_only=is_alone if end_only else None,
        )
        try:
            async for events in reader.events(on):
                if reader.end is not None:
                    self._worker.seen_to_end(run)
                for event in events:
                    yield event
            if reader.end is None and (on or await self._is_broken(io, run)):
                await raise_broken(io, self._worker.client, run)
        finally:
            reader.close()
            if reader.end is not None or reader.broken:
                self._adapter.forget(run)  # who works elsewhere does not do so here

    async def _is_broken(self, io: IO, run: str) -> bool:
        return await self._turns.progress(io, run, self._refuse_to_wait) is Progress.BROKEN

    async def _refuse_to_wait(self, io: IO, run: str, waits_for: Json) -> None:
        """A run may wait for a worker that has its step; who calls from a program that lacks it is
        told. So is who calls a run that waits for a decision."""
        await raise_parked(self._letters, io, run, waits_for)
        if "kind" not in waits_for:
            return
        kind, step = waits_for["kind"], waits_for["step"]
        is_unknown = not {step, ANY_NAME} & set(self._adapter.activity_names())
        if kind == "GraphChangedError" or (kind == "ActivityNotRegisteredError" and is_unknown):
            raise self._unknown_step(run, step)

    def _unknown_step(self, run: str, step: str) -> Exception:
        return UnknownStepError(run_id=run, runner=self.name, step=step)

    async def _delivered(self, io: IO, claim: Claim) -> None:
        """The caller of ``claim`` has its result."""
        await self._turns.delivered(PatientIO(io, self._worker.address), claim)

    async def _end_of(self, io: IO, run: str) -> Record | None:
        """The record of the end of ``run``, if it has ended."""
        return await end_of(io, run, self._journal.decode)

    async def _spec_of(self, io: IO, run: str) -> Json:
        data = await io.get(spec_key(run))
        if data is None:
            raise RunNotFoundError(run_id=run)
        return unpack_spec(self._codec, data, run)

    @property
    def _answers(self) -> Answers:
        """What settles the steps that wait for answers."""
        return Answers(self._codec, self._telling, lambda: self._worker.client, self._answered)

    async def _answered(self, run: str, record: Record, io: IO, is_new: bool) -> None:
        self._bus.publish(run, record)
        if (watcher := watching().watcher) is not None and is_new:
            client = self._worker.client
            await tell_answered(watcher, self.name, run, record.key, client, self._codec, io)

    # -- operations

    def get_workflow_status(self, workflow_id: str) -> dict[str, Any] | None:
        """State of the run ``workflow_id``: ``workflow_id``, ``status``, ``custom_status``,
        ``created_at``, ``last_updated_at``; None when there is no such workflow. One whose run has
        ended is waited for a moment, until it has ended as well."""
        run = within(self._mark, workflow_id)
        if run is None or not is_run_id(run):
            return None
        io, client = self._blocking(), self._worker.client
        state = run_in_thread(settled(io, client, run, _ENDING, payloads=True))
        if state is None:
            return None
        return {
            "workflow_id": run,
            "status": state.runtime_status.name,
            "custom_status": state.serialized_custom_status,
            "created_at": state.created_at,
            "last_updated_at": state.last_updated_at,
        }

    def cancel(self, run_id: str | None = None, *, thread_id: str | None = None) -> None:
        """Cancel a run, by its id or as the newest of a thread. What is recorded stays recorded; a
        step that runs right now runs to its end, and its result is ignored. A run that has ended
        is left as it is."""
        self._cancel_run(self._resolve(run_id, thread_id))

    terminate_workflow = cancel

    def pause_workflow(self, run_id: str | None = None, *, thread_id: str | None = None) -> None:
        """Begin no step of a run until :meth:`resume_workflow`; one that runs right now runs to its
        end. Raises :class:`RunOverError`, and :class:`WorkerMissingError` without a worker."""
        run = self._resolve(run_id, thread_id)
        run_in_thread(self._control().suspend(run))

    def resume_workflow(self, run_id: str | None = None, *, thread_id: str | None = None) -> None:
        """Let a run go on that was paused. Raises :class:`RunNotSuspendedError`, and
        :class:`WorkerMissingError` without a worker."""
        run = self._resolve(run_id, thread_id)
        run_in_thread(self._control().resume(run))

    def _control(self) -> Control:
        return Control(self._blocking(), self._worker.client, self._worker.address)

    def purge(self, run_id: str | None = None, *, thread_id: str | None = None) -> None:
        """Delete everything recorded for a finished run: its workflow, its records, its
        artifacts. The run id then names nothing. The checkpoints of its thread stay: they are the
        saver's. Raises when the run is still active."""
        run = self._resolve(run_id, thread_id)
        run_in_thread(self._purge(self._blocking(), run))

    purge_workflow = purge

    def _resolve(self, run_id: str | None, thread_id: str | None) -> str:
        if run_id is not None:
            return self._named(run_id)
        if thread_id is None:
            raise TypeError(f"pass run_id or {self._keyed_by}")
        return run_in_thread(self._turns.current(self._blocking(), thread_id))

    def _cancel_run(self, run: str) -> None:
        run_in_thread(self._cancel(self._blocking(), run))

    async def _cancel(self, io: IO, run: str) -> None:
        watcher = watching().watcher
        is_over = watcher is not None and await io.get(end_key(run)) is not None
        if await self._telling.cancel(io, run):
            if watcher is not None and not is_over:
                client = self._worker.client
                await tell_cancelled(watcher, self.name, run, client, self._codec, io)
            self._bus.publish(run, Cancelled())
            self._adapter.forget(run)

    async def _purge(self, io: IO, run: str) -> None:
        await self._purging().run(io, run)

    def _purging(self) -> Purge:
        return Purge(
            lambda: self._worker.client,
            self._codec,
            self.store,
            self._telling,
            self._turns,
            self._adapter.forget,
        )

    def _retained(self, seconds: float) -> Rounds:
        retention = Retention(
            self.name,
            seconds,
            lambda: self._worker.client,
            self._codec,
            self._turns,
            self._purging,
            self._journal.decode,
        )
        return retaining(retention, self._blocking)

    # -- both worlds

    def _blocking(self) -> IO:
        return PatientIO(BlockingIO(self.store), self._worker.address, ASKING)

    def _looping(self) -> IO:
        return PatientIO(LoopIO(self.store), self._worker.address, ASKING)


def _nothing(_run: str) -> None:
    """For a process that does not work: what it lends a run would never be asked for."""


def _is_time(seconds: Any) -> bool:
    return isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and seconds > 0
