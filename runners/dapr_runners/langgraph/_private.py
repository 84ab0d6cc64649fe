"""The private symbols of LangGraph this package touches, in one place, checked at import.

Everything here is imported under its own name; nothing is patched. Source of what they do and how
long they have been stable: langgraph 1.0.0 to 1.2.24, compared signature by signature.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from importlib.metadata import version

from dapr_runners.langgraph.errors import UnsupportedLangGraphError

try:
    from langgraph._internal._config import ensure_config
    from langgraph._internal._constants import (
        CONF,
        CONFIG_KEY_CHECKPOINT_ID,
        CONFIG_KEY_CHECKPOINT_MAP,
        CONFIG_KEY_CHECKPOINT_NS,
        CONFIG_KEY_CHECKPOINTER,
        CONFIG_KEY_NODE_ERROR,
        CONFIG_KEY_NODE_FINISHED,
        CONFIG_KEY_REPLAY_STATE,
        CONFIG_KEY_RESUME_MAP,
        CONFIG_KEY_RESUMING,
        CONFIG_KEY_STREAM,
        CONFIG_KEY_THREAD_ID,
        ERROR,
        ERROR_SOURCE_NODE,
        INTERRUPT,
    )
    from langgraph._internal._queue import AsyncQueue, SyncQueue
    from langgraph._internal._replay import ReplayState
    from langgraph._internal._runnable import RunnableCallable, RunnableSeq
    from langgraph._internal._typing import MISSING
    from langgraph.checkpoint.serde.types import _DeltaSnapshot as DeltaSnapshot
    from langgraph.errors import is_invalid_resume
    from langgraph.pregel import main
    from langgraph.pregel._algo import prepare_next_tasks, prepare_node_error_handler_task
    from langgraph.pregel._executor import AsyncBackgroundExecutor, BackgroundExecutor
    from langgraph.pregel._loop import (
        AsyncPregelLoop,
        PregelLoop,
        SyncPregelLoop,
    )
    from langgraph.pregel._messages import ensure_message_ids
    from langgraph.pregel._runner import PregelRunner
    from langgraph.pregel._runner import _panic_or_proceed as panic_or_proceed
except ImportError as error:
    raise UnsupportedLangGraphError(version=version("langgraph"), symbol=str(error)) from error

_REBOUND = (
    "SyncPregelLoop",
    "AsyncPregelLoop",
    "PregelRunner",
    "SyncQueue",
    "AsyncQueue",
    "_output",
    "get_callback_manager_for_config",
    "get_async_callback_manager_for_config",
)
for _name in _REBOUND:
    if not hasattr(main, _name):
        raise UnsupportedLangGraphError(
            version=version("langgraph"), symbol=f"langgraph.pregel.main.{_name}"
        )

output = main._output

__all__ = [
    "CONF",
    "CONFIG_KEY_CHECKPOINTER",
    "CONFIG_KEY_CHECKPOINT_ID",
    "CONFIG_KEY_CHECKPOINT_MAP",
    "CONFIG_KEY_CHECKPOINT_NS",
    "CONFIG_KEY_NODE_ERROR",
    "CONFIG_KEY_NODE_FINISHED",
    "CONFIG_KEY_REPLAY_STATE",
    "CONFIG_KEY_RESUME_MAP",
    "CONFIG_KEY_RESUMING",
    "CONFIG_KEY_STREAM",
    "CONFIG_KEY_THREAD_ID",
    "ERROR",
    "ERROR_SOURCE_NODE",
    "INTERRUPT",
    "MISSING",
    "AsyncBackgroundExecutor",
    "AsyncPregelLoop",
    "AsyncQueue",
    "BackgroundExecutor",
    "DeltaSnapshot",
    "PregelLoop",
    "PregelRunner",
    "ReplayState",
    "RunnableCallable",
    "RunnableSeq",
    "SyncPregelLoop",
    "SyncQueue",
    "ensure_config",
    "ensure_message_ids",
    "is_invalid_resume",
    "main",
    "output",
    "panic_or_proceed",
    "prepare_next_tasks",
    "prepare_node_error_handler_task",
]
