"""The next turn of a thread, started by who has not the graph: as the one before, with another
input."""

import uuid
from dataclasses import dataclass
from typing import Any

from dapr_runners.engine import (
    Json,
    Overview,
    RunNotFoundError,
    Turns,
    base_in,
    digest,
    mark_of,
    pack_spec,
    require_worker,
)
from dapr_runners.langgraph._specs import Call
from dapr_runners.langgraph._types import language_codec

_OF_A_TURN = ("checkpoint_id", "checkpoint_ns", "checkpoint_map")
"""Entries of a config that say from where the turn before went on."""


@dataclass(frozen=True, slots=True)
class NextTurn:
    """A turn that is not started yet."""

    runs: Overview
    before: str
    thread: str
    turns: Turns
    base: Json
    spec: bytes
    fingerprint: str

    @classmethod
    async def after(
        cls,
        runs: Overview,
        run: str,
        input: Any,
        checkpoint: Json | None = None,
        *,
        is_new: bool = False,
    ) -> "NextTurn":
        """The turn that goes on from ``run``, of a thread, with ``input``: where the thread is or,
        if given, at the ``checkpoint`` with these entries of a config. Its other arguments are
        those of ``run``: it is the turn that the program's own call would be, and attaches to it;
        with ``is_new``, it is one of its own."""
        found = await runs.run(run)
        run, state, spec = found.run_id, runs.state(found.run_id), await runs.spec(run)
        if state is None or found.thread is None:
            raise RunNotFoundError(run_id=run)
        codec = language_codec()
        config: Json = runs.codec.decode(spec["config"], "config")
        configurable: Json = config.get("configurable") or {}
        kept = {name: each for name, each in configurable.items() if name not in _OF_A_TURN}
        wanted = {**config, "configurable": {**kept, **(checkpoint or {})}}
        wanted.pop("run_id", None)  # tracers' name for the call before
        if wanted != config:
            spec = {**spec, "config": codec.encode(wanted, "config")}
        packed: Json = {**spec, "input": codec.encode(input, "the input")}
        for name in ("fingerprint", "call"):
            packed.pop(name, None)
        arguments: Json = runs.codec.decode(spec["arguments"], "the arguments of the call")
        has_context = packed["context"] is not None
        call = Call(input, {}, arguments, has_context, None, packed["saver"])
        own = [uuid.uuid4().hex] if is_new else []
        fingerprint = digest(found.runner, call.fingerprint(codec, packed), *own)
        base = base_in(state.serialized_input)

        def base_of(run: str, mode: str) -> Json:
            return {**base, "run": run, "mode": mode}

        mark = mark_of(run)
        turns = Turns(found.runner, runs.codec, lambda: runs.client, base_of, mark)
        data = pack_spec(codec, fingerprint, packed)
        return cls(runs, run, found.thread, turns, base, data, fingerprint)

    async def is_there(self) -> bool:
        """Whether it is the newest turn of its thread already."""
        pointer = await self.turns.pointer(self.runs.io, self.thread)
        return pointer is not None and pointer.fingerprint == self.fingerprint

    async def start(self) -> str:
        """Start it, or attach to it: the id of its run. Raises :class:`RunActiveError`, and
        :class:`WorkerMissingError` without a worker, when nothing is started."""
        runs = self.runs
        await require_worker(runs.io, runs.client, runs.worker.address, self.before)
        claim = await self.turns.claim(
            runs.io,
            thread=self.thread,
            fingerprint=self.fingerprint,
            spec=self.spec,
            mode=self.base["mode"],
            strategy="reject",
            cancel=lambda _: None,
            before_schedule=lambda _: None,
        )
        return claim.run
