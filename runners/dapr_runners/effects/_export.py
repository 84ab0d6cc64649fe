"""Everything that is known of a run, as one JSON value: for a report of a bug."""

import dataclasses
import platform
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

import grpc

from dapr_runners import __version__
from dapr_runners._times import with_iso
from dapr_runners.effects._records import EffectRecords
from dapr_runners.effects._states import with_effects
from dapr_runners.engine import Insight, Json, Overview, said, sidecar_metadata, steps_of
from dapr_runners.state import CorruptRecordError, as_json, as_size

_FORMAT = 1
_PACKAGES = ("dapr", "dapr-ext-workflow", "langgraph", "langchain-core", "crewai")
_STRUCTURE = frozenset(
    [
        "type",
        "id",
        "workflow_id",
        "replayed",
        "step",
        "node",
        "nodes",
        "attempt",
        "after",
        "kind",
        "name",
        "seconds",
        "key",
        "status",
        "steps",
        "iterations",
        "graph_name",
        "namespace",
        "effect",
    ]
)
"""Entries of an event that are no values of the program's."""
_OF_SPEC = frozenset(
    ["framework", "runner", "fingerprint", "call", "called", "saver", "how", "stream_mode"]
)
_OF_EFFECT = frozenset(
    [
        "run_id",
        "step_id",
        "effect",
        "execution_status",
        "attempt",
        "attempt_id",
        "lease_owner",
        "lease_expiration",
        "fencing_token",
        "created_at",
        "started_at",
        "updated_at",
        "finished_at",
    ]
)


_TEXTS = ("message", "stack_trace")
"""What an error says: a stack trace quotes lines of the program, and the message again."""


async def export_run(runs: Overview, insight: Insight, run: str, *, redact: bool = False) -> Json:
    """``run`` as JSON: ``versions``, ``run``, ``workflow``, ``spec``, ``steps`` (with attempts,
    times, errors and effects), ``effects``, ``events``, ``questions`` and ``decisions``. Times are
    in ISO 8601, in UTC. With ``redact``, every value of the program's is replaced by its type and
    size: its input, what its steps give and say, texts of errors, names of threads and tenants,
    keys of effects."""
    show: Callable[[Any], Any] = as_size if redact else as_json
    summary = await runs.run(run)
    run, state, spec = summary.run_id, runs.state(summary.run_id), await runs.spec(run)
    steps = await with_effects(runs, run, await steps_of(runs, run))
    events = [event async for event in insight.events(runs, run, follow=False)]
    questions = await insight.questions(runs, run)
    plain = dataclasses.asdict(summary)
    return {
        "format": _FORMAT,
        "versions": _versions(runs.worker.address),
        "run": _some(with_iso(plain), plain.keys() - {"thread", "tenant", "error"}, show),
        "workflow": {
            "status": None if state is None else state.runtime_status.name,
            "custom_status": None if state is None else _waits(state, show),
        },
        "spec": _some({k: _read(runs, v) for k, v in spec.items()}, _OF_SPEC, show),
        "steps": [_step(with_iso(dataclasses.asdict(step)), show) for step in steps],
        "effects": await _effects(runs, run, [e for s in steps for e in s.effects], show),
        "events": [_event(event, show) for event in events],
        "questions": [
            {"key": each.key, "prompt": show(each.prompt), "about": show(each.about)}
            for each in questions
        ],
        "decisions": [
            _some(with_iso(each), {"letter", "what", "at"}, show)
            for each in await runs.letters.decisions(runs.io, run)
        ],
    }


def _some(about: Json, kept: Any, show: Callable[[Any], Any]) -> Json:
    """``about`` with those entries as they are that are ``kept``, or say nothing."""
    return {
        name: as_json(value) if name in kept or value is None else show(value)
        for name, value in about.items()
    }


def _read(runs: Overview, value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        return runs.codec.decode(value)
    except CorruptRecordError:
        return value


def _step(step: Json, show: Callable[[Any], Any]) -> Json:
    effects = [_some(effect, {"effect", "status", "attempt"}, show) for effect in step["effects"]]
    return {**_some(step, step.keys() - {"error", "effects"}, show), "effects": effects}


def _waits(state: Any, show: Callable[[Any], Any]) -> Any:
    """What the workflow says that it waits for, and with whom: that may name a service."""
    told = said(state.serialized_custom_status)
    return None if told is None else _some(told, {"kind", "step"}, show)


def _event(event: Json, show: Callable[[Any], Any]) -> Json:
    told = _some({k: v for k, v in event.items() if k != "exception"}, _STRUCTURE, show)
    if isinstance(error := event.get("error"), dict):
        said_of = cast(Json, error)
        told["error"] = {**said_of, **{k: show(said_of[k]) for k in _TEXTS if said_of.get(k)}}
    return told


async def _effects(
    runs: Overview, run: str, begun: list[Json], show: Callable[[Any], Any]
) -> list[Json]:
    records = EffectRecords(runs.io, runs.codec)
    found = [await records.read(run, effect["key"]) for effect in begun]
    told: list[Json] = []
    for each in found:
        if each is not None:
            plain = with_iso(dataclasses.asdict(each.record))
            told.append(_some({k: _read(runs, v) for k, v in plain.items()}, _OF_EFFECT, show))
    return told


def _versions(address: str) -> Json:
    found: Json = {"dapr-runners": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    try:
        found["sidecar"] = sidecar_metadata(address).runtime_version
    except grpc.RpcError:
        found["sidecar"] = "it does not tell"
    return found
