"""The activities of a process's runners, begun as its worker gets them, and their workflows.

Synchronous steps run in threads, those of runs of mode "async" on an event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any

from dapr.ext import workflow as sdk

from dapr_runners.engine._concealed import concealed
from dapr_runners.engine._executions import Executions
from dapr_runners.engine._hands import Cut, Done, Hands
from dapr_runners.engine._intake import Intake
from dapr_runners.engine._io import BlockingIO, LoopIO, RelayIO, run_in_thread
from dapr_runners.engine._journal import Journal
from dapr_runners.engine._replies import Replies
from dapr_runners.engine._sdk import history_call, makes_spans, reply_channel
from dapr_runners.engine._watching import watching
from dapr_runners.engine._work import ANY_NAME, Json
from dapr_runners.engine._workflow import run_workflow
from dapr_runners.state import StateStore

logger = logging.getLogger("dapr_runners")

STEP_THREADS = 64
"""Synchronous steps that run at once in a process."""


@dataclass(frozen=True, slots=True)
class _Served:
    """A runner whose activities are done here, and how they reach the store."""

    journal: Journal
    blocking: BlockingIO
    looping: LoopIO
    relaying: RelayIO
    is_encrypted: bool


class Activities:
    """Those that come over one stream. ``loop`` gives the event loop for runs of mode "async"."""

    def __init__(self, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.served: dict[str, _Served] = {}
        self.registered: set[str] = set()
        self._loop = loop
        self._runner_of: dict[str, str] = {}
        self._of_any_name: dict[str, Any] = {}
        self._under_way: set[object] = set()
        self._is_held = False
        self._hands = Hands(STEP_THREADS, "dapr-runners-step")
        self._replies = Replies(self._break_off)
        self._executions = Executions(self.served.__contains__, self._replies, self._break_off)
        self.intake = Intake(self._taken_for, self._begin, self._replies, self._executions.take)
        """What takes them, and the turns of workflows, off the stream."""

    def open(self, runtime: sdk.WorkflowRuntime) -> None:
        """Be ready for the stream that ``runtime`` is about to open."""
        self._hands.open()
        channel = reply_channel(runtime)
        self._replies.open(channel)
        self._executions.open(runtime, history_call(channel))

    def _break_off(self) -> None:
        """What was given out is to be given out again."""
        self.intake.break_off()

    # -- runners

    def serve(
        self,
        runtime: sdk.WorkflowRuntime,
        runner: str,
        journal: Journal,
        store: StateStore,
        activities: Iterable[str],
    ) -> None:
        """Do the ``activities`` of ``runner`` from now on, and its workflow."""
        blocking = BlockingIO(store, self._hands.after)
        relaying = RelayIO(store, blocking)
        self.served[runner] = _Served(
            journal, blocking, LoopIO(store), relaying, store.is_encrypted
        )

        # The SDK marks the functions it registers, so each gets fresh ones.
        def workflow(ctx: Any, inp: Any) -> Any:
            return run_workflow(ctx, inp)

        untyped: Any = runtime
        names = {f"{runner}/{name}" for name in (*activities, "__control__")}
        self._runner_of.update(dict.fromkeys(names, runner))
        if f"{runner}/{ANY_NAME}" in names:
            self._of_any_name[runner] = self._as_the_sdk_takes_it(runner)
        for name in sorted(names - self.registered):
            untyped.register_activity(self._as_the_sdk_takes_it(runner), name=name)
        if runner not in self.registered:
            untyped.register_workflow(workflow, name=runner)
        self.registered |= {runner, *names}

    def find(self, name: str) -> Any:
        """The activity of a runner whose activities have any names, for the SDK."""
        return self._of_any_name.get(name.rpartition("/")[0])

    def _as_the_sdk_takes_it(self, runner: str) -> Any:
        async def activity(_ctx: Any, item: Json) -> Json:
            future: Future[Json] = Future()
            future.set_running_or_notify_cancel()  # it is told to whoever still listens
            self._begin(runner, item, lambda result, error: _settle(future, result, error))
            return await asyncio.wrap_future(future)

        return activity

    # -- doing them

    @property
    def is_busy(self) -> bool:
        """Whether one is being done."""
        return bool(self._under_way)

    def hold(self) -> None:
        """Begin none any more."""
        self._is_held = True

    def stop_answering(self) -> None:
        """Send the results that are there, and none any more: before the stream is closed, and what
        is being done is given to others."""
        self.hold()
        self._replies.close()

    def close(self) -> None:
        """The stream is closed."""
        self.intake.close_loop()
        self._hands.close()

    def _runner_named(self, activity: str) -> str | None:
        """The runner whose ``activity`` is done here, if one is."""
        around = activity.rpartition("/")[0]
        runner = self._runner_of.get(activity, around if around in self._of_any_name else None)
        return runner if runner in self.served else None

    def _taken_for(self, activity: str) -> str | None:
        """The runner whose ``activity`` is done without the SDK, which may be to make a span of
        it."""
        runner = self._runner_named(activity)
        is_left = watching().watcher is None and makes_spans()
        return None if is_left else runner

    def _begin(self, runner: str, item: Json, done: Done) -> None:
        """Begin an activity; ``done`` gets its outcome, in some thread."""
        if self._is_held:
            return  # for good: it is given to another when the stream is closed
        mode, operation = item["mode"], item["op"]
        served, one = self.served[runner], object()
        journal = served.journal

        def ended(outcome: Json | None, error: BaseException | None) -> None:
            if error is not None and not isinstance(error, Cut):
                logger.warning("an activity of run %s failed: %r", item["run"], error)
                if served.is_encrypted and isinstance(error, Exception):
                    error = concealed(error)
            try:
                done(outcome, error)
            finally:
                self._under_way.discard(one)

        self._under_way.add(one)
        if mode == "async":
            loop = self._loop()
            work = asyncio.run_coroutine_threadsafe(journal.execute(item, served.looping), loop)
            work.add_done_callback(lambda future: self._tell(future, ended))
        elif operation == "step" and "then" not in item:  # else it is alone
            self._hands.begin_relay(journal.execute(item, served.relaying), ended)
        else:
            self._hands.begin(lambda: run_in_thread(journal.execute(item, served.blocking)), ended)

    def _tell(self, future: "Future[Json]", done: Done) -> None:
        """Give ``done`` what ``future`` has come to."""
        if future.cancelled():
            done(None, Cut() if self._is_held else CancelledError("the step was cancelled"))
        elif (error := future.exception()) is not None:
            done(None, error)
        else:
            done(future.result(), None)


def _settle(future: "Future[Json]", result: Any, error: BaseException | None) -> None:
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError(f"an activity raised {error!r}"))  # no future takes it
    else:
        future.set_exception(error)
