"""``@effect``: a function that acts on the outside, and happens once."""

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

from dapr_runners._current_step import effects_of, running_program, running_step
from dapr_runners.effects._execution import Declared, Execution, OnUnknown
from dapr_runners.effects._reconcile import Reconcile
from dapr_runners.effects._step import Effects
from dapr_runners.engine import BlockingIO, LoopIO, run_in_thread

F = TypeVar("F", bound=Callable[..., Any])
_CHOICES = ("reconcile", "retry", "ask", "fail")


@overload
def effect(function: F, /) -> F: ...
@overload
def effect(
    *,
    reconcile: Reconcile | None = None,
    on_unknown: OnUnknown | None = None,
    key: Callable[..., object] | None = None,
    name: str | None = None,
    lease: float = 30.0,
) -> Callable[[F], F]: ...


def effect(
    function: Any = None,
    /,
    *,
    reconcile: Reconcile | None = None,
    on_unknown: OnUnknown | None = None,
    key: Callable[..., object] | None = None,
    name: str | None = None,
    lease: float = 30.0,
) -> Any:
    """Declare that a function (or a method; ``async`` too) acts on the outside.

    Called in a recorded step, in its thread or in one with a copy of its context, it has a record
    of its own: a step that runs again gets the recorded result, and the function is not called. If
    its worker was lost in the middle of it, ``on_unknown`` decides:

    ``"reconcile"``  ``reconcile(idempotency_key, record)`` asks the outside system and returns
                     ``done(value)``, ``NOT_DONE`` (it is carried out) or ``STILL_UNKNOWN`` (the run
                     is parked). The default when ``reconcile`` is given. It may be ``async`` where
                     the function is.
    ``"ask"``        the run is parked until somebody decides (see ``DeadLetters``). The default.
    ``"retry"``      it is carried out again, with the same idempotency key.
    ``"fail"``       it raises :class:`EffectUnknownError` in the step.

    ``key`` gets the arguments and names the operation (by a str, an int, a UUID, or a tuple of
    those): the idempotency key is then the same in all runs of a tenant, each of which carries it
    out. By default the operation is its place in the run: the step, and how many effects of that
    ``name`` (default: the function's) the step has asked for. ``lease`` is how many seconds a
    worker that hangs keeps others from it.

    What it raises is recorded as well: a later attempt at the step calls it again, with the same
    key. Arguments are compared with those recorded (:class:`EffectMismatchError`). One that cannot
    be stored (``self``, a client) counts by its class only: calls that differ in nothing else, and
    may come in another order, need a ``key`` each. The result must be storable. Called outside of a
    recorded step, the function simply runs.
    """
    if on_unknown not in (None, *_CHOICES):
        raise ValueError(f"on_unknown must be one of {', '.join(_CHOICES)}")
    if (on_unknown == "reconcile") > (reconcile is not None):
        raise ValueError('on_unknown="reconcile" needs a reconcile function')
    if lease <= 0:
        raise ValueError("lease must be more than 0 seconds")

    def declare(function: Any) -> Any:
        is_async = inspect.iscoroutinefunction(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function!r} is a generator: an effect is one action with one result. Make what"
                " it does between two yields an effect each."
            )
        if not callable(function):
            raise TypeError(f"{function!r} is no function. Use @effect below @tool and @task.")
        if inspect.iscoroutinefunction(reconcile) and not is_async:
            raise TypeError(f"{function!r} is not async, so its reconcile function must not be")
        declared = Declared(
            name=name or getattr(function, "__name__", type(function).__name__),
            function=function,
            signature=inspect.signature(function),
            reconcile=reconcile,
            on_unknown=on_unknown or ("ask" if reconcile is None else "reconcile"),
            key=key,
            lease=float(lease),
        )
        return _asynchronous(declared) if is_async else _synchronous(declared)

    return declare if function is None else declare(function)


def _synchronous(declared: Declared) -> Any:
    function = declared.function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        effects = _effects()
        if effects is None:
            if (program := running_program.get()) is not None and running_step.get() is None:
                return program.call(declared.name, call, args, kwargs)
            return function(*args, **kwargs)
        execution = Execution(declared, effects, args, kwargs)
        io = effects.host.io(BlockingIO)
        with execution.guarded():
            if not run_in_thread(execution.open(io)):
                return execution.replayed()
            try:
                with execution.running():
                    value = function(*args, **kwargs)
            except BaseException as error:
                run_in_thread(execution.raised(error, io))
                raise
            run_in_thread(execution.succeeded(value, io))
            return value

    return call


def _asynchronous(declared: Declared) -> Any:
    function = declared.function

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        effects = _effects()
        if effects is None:
            if (program := running_program.get()) is not None and running_step.get() is None:
                return await program.acall(declared.name, call, args, kwargs)
            return await function(*args, **kwargs)
        execution = Execution(declared, effects, args, kwargs)
        io = effects.host.io(LoopIO)
        with execution.guarded():
            if not await execution.open(io):
                return execution.replayed()
            try:
                with execution.running():
                    value = await function(*args, **kwargs)
            except BaseException as error:
                # Cancelled, too: what became of it must be recorded before it is over.
                await asyncio.shield(execution.raised(error, io))
                raise
            await asyncio.shield(execution.succeeded(value, io))
            return value

    return call


def _effects() -> Effects | None:
    return cast("Effects | None", effects_of(running_step.get()))
