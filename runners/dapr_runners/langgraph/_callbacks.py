"""One root run for tracers, although a graph's run is spread over activities and processes."""

import functools
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks.manager import (
    AsyncCallbackManagerForChainRun,
    CallbackManagerForChainRun,
)

from dapr_runners.langgraph._parking import Parking


def managers_for(make_manager: Callable[..., Any], parking: Parking, is_async: bool) -> Any:
    """LangGraph's ``get_(async_)callback_manager_for_config``, for one parked loop: the first
    process starts the root run, the others take it up under its id; leaving the loop ends
    nothing."""

    def get(*args: Any) -> Any:
        manager = make_manager(*args)
        start = manager.on_chain_start

        def taken_up() -> Any:
            kind = AsyncCallbackManagerForChainRun if is_async else CallbackManagerForChainRun
            return kind(
                run_id=parking.run_id,
                handlers=manager.handlers,
                inheritable_handlers=manager.inheritable_handlers,
                parent_run_id=manager.parent_run_id,
                tags=manager.tags,
                inheritable_tags=manager.inheritable_tags,
                metadata=manager.metadata,
                inheritable_metadata=manager.inheritable_metadata,
            )

        async def on_start_async(*args: Any, **kwargs: Any) -> Any:
            if parking.run_id is not None:
                return _quiet_async(taken_up(), parking)
            run = await start(*args, **kwargs)
            parking.run_id = run.run_id
            return _quiet_async(run, parking)

        def on_start(*args: Any, **kwargs: Any) -> Any:
            if parking.run_id is not None:
                return _quiet(taken_up(), parking)
            run = start(*args, **kwargs)
            parking.run_id = run.run_id
            return _quiet(run, parking)

        manager.on_chain_start = on_start_async if is_async else on_start
        return manager

    return get


def _quiet(run: Any, parking: Parking) -> Any:
    end, error = run.on_chain_end, run.on_chain_error

    def on_end(*args: Any, **kwargs: Any) -> Any:
        call = functools.partial(end, *args, **kwargs)
        return None if _left(call, parking) else call()

    def on_error(*args: Any, **kwargs: Any) -> Any:
        call = functools.partial(error, *args, **kwargs)
        return None if parking.leaving or _left(call, parking) else call()

    run.on_chain_end, run.on_chain_error = on_end, on_error
    return run


def _quiet_async(run: Any, parking: Parking) -> Any:
    end, error = run.on_chain_end, run.on_chain_error

    async def on_end(*args: Any, **kwargs: Any) -> Any:
        call = functools.partial(end, *args, **kwargs)
        return None if _left(call, parking) else await call()

    async def on_error(*args: Any, **kwargs: Any) -> Any:
        call = functools.partial(error, *args, **kwargs)
        return None if parking.leaving or _left(call, parking) else await call()

    run.on_chain_end, run.on_chain_error = on_end, on_error
    return run


def _left(call: Callable[[], Any], parking: Parking) -> bool:
    return parking.ending is not None and parking.ending.leave(call)
