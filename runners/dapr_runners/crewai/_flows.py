"""Flows: each method is a strand, and a method that has ended is not run again.

Methods are named flat below their flow, as each listener runs inside the one before it. What a
method returned, and what it changed of the flow, is noted when it ends; a program that is driven
again takes it from there. A method that is in the middle is run again up to there.
"""

import functools
import inspect
import threading
from typing import Any, cast

from dapr_runners.crewai import _private as crew
from dapr_runners.crewai._driver import MISSING, Driver
from dapr_runners.crewai._forks import joined_async, on_strand
from dapr_runners.crewai._gate import muted
from dapr_runners.crewai._order import ending_of
from dapr_runners.crewai._outcomes import Outcome
from dapr_runners.crewai._patching import replace
from dapr_runners.crewai._strands import Place, current_place, here
from dapr_runners.state import UnstorableValueError


def install() -> None:
    replace(crew.Flow, "flow_definition", _one_at_a_time)
    replace(crew.Flow, "kickoff_async", _kickoff)
    replace(crew.Flow, "_execute_start_method", _method)
    replace(crew.Flow, "_execute_single_listener", _method)
    replace(crew.Flow, "_execute_listeners", _listeners)
    replace(crew.Flow, "_execute_method", _execute)
    replace(crew.PersistenceDecorator, "persist_state", _persist)


def _one_at_a_time(original: Any) -> Any:
    """The first objects of a class make its definition, which two threads at once cannot: one reads
    the attributes of the class while the other sets one. Agents are of such a class, too, and a
    program that goes on in a new process may begin with several."""
    lock = threading.RLock()

    def call(cls: Any) -> Any:
        with lock:
            return original(cls)

    return call


def _kickoff(original: Any) -> Any:
    joined = joined_async(original)

    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None or crew.is_internal_flow(self):
            return await original(self, *args, **kwargs)
        inner = place.inner(f"flow-{type(self).__name__}")
        driver = place.driver
        driver.local["flow", id(self)] = (self, inner)
        # Made anew with each flow object; the user's code may read it.
        state_id = driver.note(inner, "id", lambda: self.flow_id)
        if state_id != self.flow_id:
            crew.stamp_state_id(self, state_id)
        readers = driver.local.setdefault("usage readers", [])
        reader = functools.partial(crew.count_usage, self)
        readers.append(reader)
        token = here.set(inner)
        try:
            return await joined(self, *args, **kwargs)
        finally:
            here.reset(token)
            readers.remove(reader)

    return call


def _root(flow: Any, place: Place) -> Place:
    known: Any = place.driver.local.get(("flow", id(flow)))
    return place if known is None else known[1]


def _method(original: Any) -> Any:
    # No coroutine function: the strand must be there before its task runs for the first time.
    def call(self: Any, name: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None or crew.is_internal_flow(self):
            return original(self, name, *args, **kwargs)
        forked = _root(self, place).fork(str(name), below=place.strand)
        return on_strand(forked, original(self, name, *args, **kwargs))

    return call


def _listeners(original: Any) -> Any:
    joined = joined_async(original)

    async def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current_place() is None or crew.is_internal_flow(self):
            return await original(self, *args, **kwargs)
        return await joined(self, *args, **kwargs)

    return call


def _execute(original: Any) -> Any:
    async def call(self: Any, name: Any, method: Any, *args: Any, **kwargs: Any) -> Any:
        place = current_place()
        if place is None or crew.is_internal_flow(self):
            return await original(self, name, method, *args, **kwargs)
        body = place.inner("body")
        key = f"{body.path}!method.0"
        hints = (cast(Any, type(self.state)),)
        noted = place.driver.recall(key, body.path, hints)
        if noted is MISSING:
            done = await original(self, name, _noting(self, method, body, key), *args, **kwargs)
        else:
            done = await _passed_over(original, self, name, noted, body, args, kwargs)
        await _in_turn(body, _root(self, place).path)
        return done

    return call


async def _passed_over(
    original: Any, flow: Any, name: Any, noted: Any, body: Place, args: Any, kwargs: Any
) -> Any:
    """What ``original`` makes of a method that has ended before."""
    body.driver.order.pass_by(f"{body.path}.")
    _apply(flow, noted)

    async def recorded(*_: Any, **__: Any) -> Any:
        return noted["result"]

    token = muted.set(True)
    try:
        return await original(flow, name, recorded, *args, **kwargs)
    finally:
        muted.reset(token)


async def _in_turn(body: Place, flow: str) -> None:
    """Let the method end when it did before. What follows from it is decided at once."""
    driver, ending = body.driver, ending_of(body.path)
    await driver.order.turn(flow, ending)
    if driver.recall(ending, ending) is MISSING:
        driver.record_note(ending, Outcome("value", driver.types.codec.encode(None)))


def _noting(flow: Any, method: Any, body: Place, key: str) -> Any:
    """``method``, whose result and changes are noted when it ends."""
    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def run_async(*args: Any, **kwargs: Any) -> Any:
            token = here.set(body)
            try:
                changes = _Changes(flow, body.driver)
                result = await method(*args, **kwargs)
                changes.note(key, result)
                return result
            finally:
                here.reset(token)

        return run_async

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        token = here.set(body)
        try:
            changes = _Changes(flow, body.driver)
            result = method(*args, **kwargs)
            if inspect.iscoroutine(result):  # CrewAI awaits it
                return _noted_later(changes, key, result, body)
            changes.note(key, result)
            return result
        finally:
            here.reset(token)

    return run


async def _noted_later(changes: "_Changes", key: str, coroutine: Any, body: Place) -> Any:
    token = here.set(body)
    try:
        result = await coroutine
        changes.note(key, result)
        return result
    finally:
        here.reset(token)


class _Changes:
    """What a method changes of its flow: fields of the state, and attributes of its own."""

    def __init__(self, flow: Any, driver: Driver) -> None:
        self._flow = flow
        self._driver = driver
        self._before = self._encoded()

    def _encoded(self) -> dict[str, dict[str, bytes]] | None:
        """None for what cannot be stored: the method is then run again in its place."""
        codec = self._driver.types.codec_with(type(self._flow.state))
        parts = {
            "state": crew.state_fields(self._flow),
            "attributes": crew.own_attributes(self._flow),
        }
        try:
            return {
                part: {name: codec.encode(value, name) for name, value in list(values.items())}
                for part, values in parts.items()
            }
        except UnstorableValueError:
            return None

    def note(self, key: str, result: Any) -> None:
        """Note the changes, with the method's ``result``."""
        before, after = self._before, self._encoded()
        if before is None or after is None:
            return
        noted: dict[str, Any] = {"result": result}
        codec = self._driver.types.codec_with(type(self._flow.state))
        for part, values in after.items():
            new = {k: v for k, v in values.items() if before[part].get(k) != v}
            noted[part] = {k: codec.decode(v, k) for k, v in new.items()}
            noted[f"{part} gone"] = [k for k in before[part] if k not in values]
        try:
            data = codec.encode(noted, "what a method of a flow returned")
        except UnstorableValueError:
            return
        self._driver.record_note(key, Outcome("value", data))


def _apply(flow: Any, noted: dict[str, Any]) -> None:
    """Change ``flow`` as the method did."""
    own: dict[str, Any] = flow.__dict__
    for part, fields in (("state", crew.state_fields(flow)), ("attributes", own)):
        fields.update(noted[part])
        for name in noted[f"{part} gone"]:
            fields.pop(name, None)


def _persist(original: Any) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return None if muted.get() else original(self, *args, **kwargs)

    return call
