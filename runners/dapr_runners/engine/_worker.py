"""The one worker of a process: a workflow stream that knows all its runners.

Two streams of one app get each other's work and fail it, so every runner of a process registers
here, and the stream opens when the first of them starts.
"""

import asyncio
import functools
import threading
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

import grpc
from dapr.ext import workflow as sdk

from dapr_runners.engine._activities import Activities
from dapr_runners.engine._exits import cut_at_exit
from dapr_runners.engine._garbage import Garbage
from dapr_runners.engine._journal import Journal
from dapr_runners.engine._keys import (
    company_key,
    dead_letters_key,
    roster_key,
    unscheduled_key,
    untold_key,
)
from dapr_runners.engine._metadata import missing_service
from dapr_runners.engine._probe import probe_workflows
from dapr_runners.engine._roster import Roster
from dapr_runners.engine._sdk import lift_message_limit, replace_spans, resolve_activities
from dapr_runners.engine._watching import watching
from dapr_runners.engine.errors import DuplicateRunnerError, WorkflowEngineUnavailableError
from dapr_runners.state import StateStore, sidecar_address

T = TypeVar("T")

_SETTLE_SECONDS = 2.0


class Worker:
    """A process's workflow worker on one sidecar (``address`` is ``host:port``)."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._journals: dict[str, Journal] = {}
        self._stores: dict[str, StateStore] = {}
        self._names: dict[str, list[str]] = {}
        self._runtime: sdk.WorkflowRuntime | None = None
        self._client: sdk.DaprWorkflowClient | None = None
        self._users = 0
        self._callers = 0
        self._activities: Activities | None = None
        self._roster: Roster | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: deque[str] = deque(maxlen=64)
        self._garbage = Garbage()

    # -- runners

    def register(
        self, runner: str, journal: Journal, store: StateStore, activities: list[str]
    ) -> None:
        """Make ``runner`` known. Do it for every runner before the first starts: recorded runs are
        handed out as soon as the stream opens."""
        with self._lock:
            if runner in self._journals:
                raise DuplicateRunnerError(runner=runner)
            if self._runtime is not None:
                _join(journal, store, runner)
            self._journals[runner] = journal
            self._stores[runner] = store
            self._names[runner] = activities
            if self._runtime is not None:
                self._register_with(self._runtime, runner)

    def unregister(self, runner: str, journal: Journal) -> None:
        """Free the name of ``runner``. A stream that other runners keep open goes on with its
        recorded runs: they would fail in a process that does not know them."""
        with self._lock:
            if self._journals.get(runner) is not journal:
                return
            del self._journals[runner]
            journal.company.leave(self._stores.pop(runner))
            self._names.pop(runner, None)

    def _register_with(self, runtime: sdk.WorkflowRuntime, runner: str) -> None:
        assert self._activities is not None
        self._activities.serve(
            runtime, runner, self._journals[runner], self._stores[runner], self._names[runner]
        )

    async def on_loop(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run ``coroutine`` where the steps of runs of mode "async" run."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self.loop()))

    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that runs the steps of runs of mode "async"."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="dapr-runners-loop", daemon=True
                )
                thread.start()
            return self._loop

    # -- life

    @property
    def client(self) -> sdk.DaprWorkflowClient:
        """The workflow client, thread-safe; made on first use."""
        with self._lock:
            if self._client is None:
                host, port = _host_port(self.address)
                self._client = sdk.DaprWorkflowClient(host=host, port=port)
            return self._client

    def start(self) -> None:
        """Open the stream, unless it is open. Raises at once, saying what to start, when the
        sidecar is not there, refuses the token or cannot run workflows, and when this process
        cannot read what others have stored for all."""
        self.probe()
        with self._lock:
            if self._runtime is None:
                self._join_all()
            self._users += 1
            if self._runtime is not None:
                return
            host, port = _host_port(self.address)
            activities = Activities(self.loop)
            runtime = sdk.WorkflowRuntime(
                host=host,
                port=port,
                maximum_thread_pool_workers=16,
                interceptors=[activities.intake],
            )
            lift_message_limit(runtime)
            resolve_activities(runtime, activities.find)
            replace_spans(runtime, lambda: watching().watcher is not None)
            activities.open(runtime)
            self._activities = activities
            for runner in self._journals:
                self._register_with(runtime, runner)
            try:
                runtime.start()
            except BaseException:
                activities.stop_answering()
                activities.close()
                self._activities = None
                raise
            self._runtime = runtime
            if self._stores:
                self._roster = Roster(next(iter(self._stores.values())), self.runners)
                self._roster.join()
        self._garbage.freeze()  # collects: what is garbage may run code of the user's
        cut_at_exit(self)

    def _join_all(self) -> None:
        try:
            for runner, journal in self._journals.items():
                _join(journal, self._stores[runner], runner)
        except BaseException:
            for runner, journal in self._journals.items():
                journal.company.leave(self._stores[runner])
            raise

    def runners(self) -> list[str]:
        """Names of the runners whose work this process does."""
        return [] if self._activities is None else list(self._activities.served)

    @property
    def is_working(self) -> bool:
        """Whether the stream is open."""
        return self._runtime is not None

    @property
    def busy(self) -> bool:
        """Whether a step is being executed."""
        return self._activities is not None and self._activities.is_busy

    def hold(self) -> None:
        """Begin no step any more. The sidecar gives those that it has sent to others once the
        stream is closed; no message would tell it before."""
        if self._activities is not None:
            self._activities.hold()

    def connect(self) -> None:
        """Be ready to schedule runs and to follow them, without a stream. Raises as :meth:`start`
        does."""
        self.probe()
        with self._lock:
            self._callers += 1

    def disconnect(self) -> None:
        """End of :meth:`connect`."""
        with self._lock:
            self._callers -= 1
            client = self._idle_client()
        if client is not None:
            client.close()

    def _idle_client(self) -> sdk.DaprWorkflowClient | None:
        """The client, given up, when no runner uses it any more."""
        if self._users > 0 or self._callers > 0:
            return None
        client, self._client = self._client, None
        return client

    def seen_to_end(self, run: str) -> None:
        """A caller in this process has seen the end of ``run``."""
        self._ended.append(run)

    def _settle(self) -> None:
        """Let the workflows of the runs that were just seen to end, end too.

        The record of the end comes first: a stream closed in between would leave them open until
        the next worker is there.
        """
        give_up_at = time.monotonic() + _SETTLE_SECONDS
        while self._ended and time.monotonic() < give_up_at:
            try:
                state = self.client.get_workflow_state(self._ended[0], fetch_payloads=False)
            except grpc.RpcError:
                return
            if state is None or state.runtime_status.name not in ("RUNNING", "PENDING"):
                self._ended.popleft()
            else:
                time.sleep(0.005)

    def stop(self) -> None:
        """Close the stream when its last runner stops."""
        if self._users == 1 and self._runtime is not None:
            self._settle()
        with self._lock:
            self._users -= 1
            if self._users > 0 or self._runtime is None:
                return
            self.hold()
            runtime, self._runtime = self._runtime, None
            activities, self._activities = self._activities, None
            loop, self._loop = self._loop, None
            client = self._idle_client()
            journals = [(each, self._stores[name]) for name, each in self._journals.items()]
            roster, self._roster = self._roster, None
        if activities is not None:
            activities.stop_answering()
        runtime.shutdown()
        if roster is not None:
            roster.leave()
        if activities is not None:
            activities.close()
        for journal, store in journals:
            journal.company.leave(store)
        if client is not None:
            client.close()
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
        self._garbage.thaw()

    def cut(self) -> None:
        """Close the stream because the program ends. Steps in flight are cut, as by a kill."""
        if self._runtime is not None:
            self._settle()
        with self._lock:
            runtime, self._runtime = self._runtime, None
        if self._activities is not None:
            self._activities.stop_answering()
        if runtime is not None:
            runtime.shutdown()

    def probe(self) -> None:
        """Raises, in seconds, when the sidecar cannot run workflows."""
        probe_workflows(self.address)
        if (missing := missing_service(self.address)) is not None:
            raise WorkflowEngineUnavailableError(address=self.address, detail=missing)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run ``loop`` until it is stopped. Steps that run then are cancelled, and recorded by nobody:
    they run again elsewhere."""
    try:
        while True:
            try:
                loop.run_forever()
                break
            except (SystemExit, KeyboardInterrupt):
                # A step's own: asyncio lets it through, to end a program of one task. Whoever
                # awaits the step gets it as well.
                continue
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            loop.run_until_complete(asyncio.wait(tasks, timeout=_SETTLE_SECONDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _join(journal: Journal, store: StateStore, runner: str) -> None:
    """Say that this process works for ``runner``. Keys that were replaced since, or turned on, are
    left behind by what all runs share, which is never purged."""
    shared = [unscheduled_key(), dead_letters_key(), roster_key()]
    store.reseal([company_key(runner), untold_key(runner), *shared])
    journal.company.join(store)


def _host_port(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    return (host, port) if port.isdigit() else (address, "443")


@functools.cache
def process_worker(address: str) -> Worker:
    """The worker of this process on the sidecar at ``address``."""
    return Worker(address)


def default_worker() -> Worker:
    """The worker of this process on the sidecar the environment names."""
    return process_worker(sidecar_address())
