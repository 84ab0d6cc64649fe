"""Which run a call is for: attach to the active one, deliver a finished one, or start a turn.

The pointer of a thread names its newest turn and holds what that turn was started with, so a
caller that died between claiming and scheduling is made good by the next caller, whoever it is.
"""

import copy
import enum
import json
import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from dapr.ext import workflow as sdk

from dapr_runners.engine._io import IO
from dapr_runners.engine._keys import CANCELLED, end_key, run_id, spec_key, thread_key
from dapr_runners.engine._work import Json
from dapr_runners.engine.errors import RunActiveError, RunIdInUseError, RunNotFoundError
from dapr_runners.state import Codec, CorruptRecordError

logger = logging.getLogger("dapr_runners")

MultitaskStrategy: TypeAlias = Literal["reject", "enqueue", "interrupt"]

_RECEIVED_KEPT = 1024
_TELL_WAITING_AFTER = 3.0
"""Seconds: with a worker, a run is started in a fraction of one."""


class Progress(enum.Enum):
    """How far a run is."""

    ABSENT = "absent"
    ACTIVE = "active"
    ENDED = "ended"
    BROKEN = "broken"
    """The workflow failed or was terminated without a recorded end."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """The newest turn of a thread."""

    turn: int
    run: str
    fingerprint: str
    spec: bytes
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """The run a call is for; ``started`` when this call began it."""

    run: str
    thread: str | None
    started: bool


class Turns:
    """Claims runs of one runner; ``mark`` is the tenant's. ``waits`` hears of runs (and their
    modes) that are not started for long, and tells whether a worker may be missing."""

    def __init__(
        self,
        runner: str,
        codec: Codec,
        client: Callable[[], sdk.DaprWorkflowClient],
        base: Callable[[str, str], Json],
        mark: str = "",
        waits: Callable[[str, str], bool] = lambda _run, _mode: True,
    ) -> None:
        self._mark = mark
        self._waits = waits
        self._runner = runner
        self._codec = codec
        self._client = client
        self._base = base
        self._received: OrderedDict[str, int] = OrderedDict()

    def of(self, mark: str) -> "Turns":
        """Those of the tenant that has ``mark``."""
        turns = copy.copy(self)
        turns._mark = mark
        return turns

    def _key(self, thread: str) -> str:
        return thread_key(self._runner, thread, self._mark)

    @contextmanager
    def handing_over(self, run: str) -> Generator[None]:
        """Around the hand-over of what a caller may want nothing more of ``run`` after. Should it
        ask for more all the same, it comes back here; should it leave, the next call on the thread
        is a new turn, which waits for the rest of this one."""
        self._received[run] = self._received.pop(run, 0) + 1
        while len(self._received) > _RECEIVED_KEPT:
            self._received.popitem(last=False)
        yield
        if (more := self._received.pop(run, 0) - 1) > 0:
            self._received[run] = more

    def is_received(self, run: str) -> bool:
        """Whether a caller in this process has all it wants of ``run``."""
        return run in self._received

    async def claim(
        self,
        io: IO,
        *,
        thread: str,
        fingerprint: str,
        spec: bytes,
        mode: str,
        strategy: MultitaskStrategy,
        cancel: Callable[[str], Any],
        before_schedule: Callable[[str], None],
        wanted: str | None = None,
    ) -> Claim:
        """The run for a call with this ``fingerprint`` on ``thread``. ``wanted``: its run id."""
        key = self._key(thread)
        while True:
            stored = await io.read(key)
            pointer = None if stored is None else self._pointer(key, stored.value)
            if wanted is not None and (old := await io.get(spec_key(wanted))) is not None:
                if _fingerprint_of(self._codec, old, wanted) != fingerprint:
                    raise RunIdInUseError(run_id=wanted)
                await self.schedule_if_absent(io, wanted, mode)
                return Claim(wanted, thread, started=False)
            if pointer is not None:
                same = pointer.fingerprint == fingerprint and wanted in (None, pointer.run)
                received = pointer.delivered or self.is_received(pointer.run)
                progress = await self.progress(io, pointer.run)
                purged = progress is Progress.ABSENT and pointer.delivered
                if progress in (Progress.ABSENT, Progress.ACTIVE) and not purged:
                    if progress is Progress.ABSENT:
                        await io.create(spec_key(pointer.run), pointer.spec)
                        await self.schedule_if_absent(io, pointer.run, mode)
                    if same and not received:
                        return Claim(pointer.run, thread, started=False)
                    if received and strategy == "reject":
                        strategy = "enqueue"  # it is about to end, and its caller has left
                    await self._make_way(io, pointer, thread, strategy, cancel)
                    continue
                if same and not received and progress is Progress.ENDED:
                    return Claim(pointer.run, thread, started=False)
            turn = 1 if pointer is None else pointer.turn + 1
            run = wanted or run_id(self._runner, thread, turn, self._mark)
            packed = self._pack(Pointer(turn, run, fingerprint, spec))
            won = (
                await io.create(key, packed)
                if stored is None
                else await io.replace(key, packed, stored.etag)
            )
            if won:
                await self._start(io, run, fingerprint, spec, mode, before_schedule)
                return Claim(run, thread, started=True)

    async def start_unthreaded(
        self,
        io: IO,
        *,
        run: str,
        fingerprint: str,
        spec: bytes,
        mode: str,
        before_schedule: Callable[[str], None],
    ) -> Claim:
        """Start a run that belongs to no thread, or attach to it."""
        started = await self._start(io, run, fingerprint, spec, mode, before_schedule)
        return Claim(run, None, started)

    async def _require_same(self, io: IO, run: str, fingerprint: str) -> None:
        """Raise when ``run`` was started by another call than one with this ``fingerprint``."""
        stored = await io.get(spec_key(run))
        if stored is not None and _fingerprint_of(self._codec, stored, run) != fingerprint:
            raise RunIdInUseError(run_id=run)

    async def _make_way(
        self,
        io: IO,
        pointer: Pointer,
        thread: str,
        strategy: MultitaskStrategy,
        cancel: Callable[[str], Any],
    ) -> None:
        if strategy == "reject":
            raise RunActiveError(runner=self._runner, thread=thread, run_id=pointer.run)
        if strategy == "interrupt":
            await io.call(lambda: cancel(pointer.run))
        await self.over(io, pointer.run)

    async def over(self, io: IO, run: str, patience: float = float("inf")) -> None:
        """Wait until ``run`` is over, or for ``patience`` seconds."""
        deadline = time.monotonic() + patience
        pause = 0.01
        while await self.progress(io, run) in (Progress.ACTIVE, Progress.ABSENT):
            if time.monotonic() > deadline:
                return
            await io.sleep(pause)
            pause = min(pause * 1.5, 1.0)

    async def _start(
        self,
        io: IO,
        run: str,
        fingerprint: str,
        spec: bytes,
        mode: str,
        before_schedule: Callable[[str], None],
    ) -> bool:
        """Start ``run``, unless another call has; whether this one has."""
        if not await io.create(spec_key(run), spec):
            await self._require_same(io, run, fingerprint)
            await self.schedule_if_absent(io, run, mode)
            return False
        before_schedule(run)
        await self._schedule(io, run, mode)
        return True

    async def schedule_if_absent(self, io: IO, run: str, mode: str) -> None:
        """The caller that started ``run`` may have died before it was scheduled."""
        if await self.progress(io, run) is Progress.ABSENT:
            await self._schedule(io, run, mode)

    async def _schedule(self, io: IO, run: str, mode: str) -> None:
        request = {"base": self._base(run, mode), "runner": self._runner}

        def schedule() -> None:
            late = threading.Timer(_TELL_WAITING_AFTER, self._tell_waiting, (run, mode))
            late.daemon = True
            late.start()
            try:
                client: Any = self._client()
                client.schedule_new_workflow(
                    cast(Any, named(self._runner)), input=request, instance_id=run
                )
            except Exception as error:
                if "already exists" not in str(error).lower():
                    raise
                # Somebody else scheduled it in between: then it runs, which is all we want.
                logger.debug("run %s was scheduled by another caller", run)
            finally:
                late.cancel()

        await io.call(schedule)

    def _tell_waiting(self, run: str, mode: str) -> None:
        if not self._waits(run, mode):
            logger.warning("Run %s is recorded, but not started yet: the sidecar is slow.", run)
            return
        logger.warning(
            "Run %s waits to be started: no worker of the runner %r seems to be there. It is"
            " recorded, and begins when a program that calls start() on the runner is; this call"
            " waits for that.",
            run,
            self._runner,
        )

    async def progress(
        self,
        io: IO,
        run: str,
        waits: Callable[[IO, str, Json], Coroutine[Any, Any, None]] | None = None,
    ) -> Progress:
        """How far ``run`` is. ``waits`` is told what holds it up, if something does."""
        if (end := await io.get(end_key(run))) is not None:
            return Progress.BROKEN if end == CANCELLED else Progress.ENDED
        state = await io.call(lambda: self._client().get_workflow_state(run))
        if state is None:
            return Progress.ABSENT
        if waits is not None and (held_up := _held_up(state.serialized_custom_status)):
            await waits(io, run, held_up)
        status = str(state.runtime_status.name)
        match status:
            case "FAILED" | "TERMINATED" | "CANCELED":
                return Progress.BROKEN
            case "COMPLETED":
                return Progress.ENDED
            case _:
                return Progress.ACTIVE

    async def pointer(self, io: IO, thread: str) -> Pointer | None:
        """The newest turn of ``thread``."""
        key = self._key(thread)
        data = await io.get(key)
        return None if data is None else self._pointer(key, data)

    async def current(self, io: IO, thread: str) -> str:
        """The id of the newest run of ``thread``."""
        pointer = await self.pointer(io, thread)
        if pointer is None:
            raise RunNotFoundError(run_id=f"(newest of thread {thread})")
        return pointer.run

    async def delivered(self, io: IO, claim: Claim) -> None:
        """A caller has received the end of the run: the next call with its input is a new turn."""
        if claim.thread is None:
            return
        key = self._key(claim.thread)
        while (stored := await io.read(key)) is not None:
            pointer = self._pointer(key, stored.value)
            if pointer.run != claim.run or pointer.delivered:
                return
            if await io.replace(key, self._pack(replace(pointer, delivered=True)), stored.etag):
                return

    async def expected(self, io: IO, thread: str, run: str) -> None:
        """``run`` of ``thread`` goes on after its end: the next call with its input gets its
        result."""
        key = self._key(thread)
        while (stored := await io.read(key)) is not None:
            pointer = self._pointer(key, stored.value)
            if pointer.run != run or not pointer.delivered:
                break
            if await io.replace(key, self._pack(replace(pointer, delivered=False)), stored.etag):
                break
        self._received.pop(run, None)

    async def purged(self, io: IO, thread: str, run: str) -> None:
        """``run`` of ``thread`` is about to be deleted. Its turn has been, and is forgotten."""
        key = self._key(thread)
        while (stored := await io.read(key)) is not None:
            pointer = self._pointer(key, stored.value)
            if pointer.run != run:
                return
            gone = replace(pointer, fingerprint="", spec=b"", delivered=True)
            if await io.replace(key, self._pack(gone), stored.etag):
                return

    def _pack(self, pointer: Pointer) -> bytes:
        fields = (
            pointer.turn, pointer.run, pointer.fingerprint, pointer.spec, pointer.delivered
        )  # fmt: skip
        return self._codec.encode_plain(list(fields), "the thread's pointer")

    def _pointer(self, key: str, data: bytes) -> Pointer:
        plain = self._codec.decode(data, key)
        if not isinstance(plain, list) or len(cast(list[Any], plain)) != 5:
            raise CorruptRecordError(key=key, reason="it is not the pointer of a thread")
        return Pointer(*cast(list[Any], plain))


def no_base(run: str, mode: str) -> Json:
    """Of turns that only look, or tell."""
    raise AssertionError(f"{run} is not scheduled from here")


def pack_spec(codec: Codec, fingerprint: str, spec: Json) -> bytes:
    """What a run is started with, as stored; no two calls store the same. With ``called``, when
    that is: seconds since the epoch."""
    head = {"fingerprint": fingerprint, "call": secrets.token_hex(16), "called": time.time()}
    return codec.encode_plain({**head, **spec}, "the run's input")


def unpack_spec(codec: Codec, data: bytes, run: str) -> Json:
    """The reverse of :func:`pack_spec`."""
    plain = codec.decode(data, spec_key(run))
    if not isinstance(plain, dict) or "fingerprint" not in plain:
        raise CorruptRecordError(key=spec_key(run), reason="it does not describe a run")
    return cast(Json, plain)


def _fingerprint_of(codec: Codec, data: bytes, run: str) -> str:
    return unpack_spec(codec, data, run)["fingerprint"]


def named(name: str) -> Callable[..., None]:
    """SDK 1.18 wants a function to schedule, and takes the workflow's name from it."""

    def workflow(_ctx: Any, _inp: Any) -> None: ...

    workflow.__name__ = name
    workflow.__dict__["_dapr_alternate_name"] = name
    return workflow


def said(custom_status: str | None) -> Json | None:
    """What ``_workflow`` says in the custom status."""
    told = json.loads(custom_status) if custom_status else None
    # The SDK encodes a string once more, or not.
    return json.loads(told) if told and isinstance(told, str) else told or None


def _held_up(custom_status: str | None) -> Json | None:
    """What holds a run up, if something does."""
    status = said(custom_status)
    return status if status is not None and not {"kind", "parked"}.isdisjoint(status) else None
