"""Freeze a loop that is parked at its plan, and thaw it elsewhere.

What is frozen is generic: every attribute of LangGraph's loop object that is plain data, plus the
few that need care, listed here. What belongs to the process (``_LIVE``) is made anew by the loop's
own constructor. Nothing of LangGraph's is stored as an object of its class but through the codec.
"""

# LangGraph's private side is only partly typed.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections import deque
from collections.abc import Mapping
from typing import Any, TypeAlias

from langgraph.channels import UntrackedValue
from langgraph.channels.base import BaseChannel
from langgraph.channels.delta import DeltaChannel

from dapr_runners.langgraph import _private as lg
from dapr_runners.langgraph._parts import PartReader, PartWriter

Json: TypeAlias = dict[str, Any]

_LIVE = frozenset(
    {
        "stream", "store", "cache", "checkpointer", "nodes", "specs", "manager", "control",
        "stack", "submit", "managed", "trigger_to_nodes", "retry_policy", "cache_policy",
        "_migrate_checkpoint", "checkpointer_get_next_version", "checkpointer_put_writes",
        "checkpointer_put_writes_accepts_task_path", "_checkpointer_put_after_previous",
        "_put_checkpoint_fut", "_delta_write_futs", "_error_handler_write_futs",
        "_graph_lifecycle_events", "_has_graph_lifecycle_callbacks", "input_keys", "output_keys",
        "stream_keys", "interrupt_after", "interrupt_before", "input", "durability",
        "_has_untracked_channels", "_delta_channel_names", "parking", "_submitter", "_thawed",
        "_skip_cache",
        # frozen below, each in its own way
        "tasks", "channels", "config", "checkpoint_config", "prev_checkpoint_config",
        "_initial_checkpoint_config", "checkpoint", "checkpoint_pending_writes",
        "_exit_delta_writes", "_resume_loaded_writes", "_exit_command_writes", "output",
        "checkpoint_metadata",
    }
)  # fmt: skip
_COORDINATES = (
    lg.CONFIG_KEY_THREAD_ID,
    lg.CONFIG_KEY_CHECKPOINT_NS,
    lg.CONFIG_KEY_CHECKPOINT_ID,
    lg.CONFIG_KEY_CHECKPOINT_MAP,
)
_FRESH_SETS = (
    "_written_task_ids",
    "_reapplied_task_ids",
    "_stored_delta_writes",
    "_delta_channels_forced_snapshot",
)
"""Sets a newer LangGraph expects; a snapshot of an older one lacks them."""


def freeze(loop: Any, parts: PartWriter) -> Json:
    """``loop``, parked at its plan, as plain data with references into ``parts``."""
    conf = loop.config[lg.CONF]
    replay = conf.get(lg.CONFIG_KEY_REPLAY_STATE)
    attributes = {k: v for k, v in loop.__dict__.items() if k not in _LIVE}
    frozen: Json = {
        "attributes": parts.put(attributes, "the loop's own bookkeeping"),
        "channels": _freeze_channels(loop.channels, parts),
        "checkpoint": freeze_checkpoint(loop.checkpoint, parts),
        "metadata": parts.put(loop.checkpoint_metadata, "the checkpoint's metadata"),
        "resuming": conf.get(lg.CONFIG_KEY_RESUMING),
        "coordinates": coordinates(loop.config),
        "checkpoint_config": coordinates(loop.checkpoint_config),
        "initial_config": coordinates(
            getattr(loop, "_initial_checkpoint_config", loop.checkpoint_config)
        ),
    }
    if loop.prev_checkpoint_config is not None:
        frozen["previous_config"] = coordinates(loop.prev_checkpoint_config)
    if replay is not None:
        frozen["replay"] = [replay.checkpoint_id, sorted(replay._visited_ns)]
    if (resume := conf.get(lg.CONFIG_KEY_RESUME_MAP)) is not None:
        frozen["resume_map"] = parts.put(resume, "Command(resume=...)")
    if loop.checkpoint_pending_writes:
        frozen["pending"] = freeze_pending(loop.checkpoint_pending_writes, parts)
    if getattr(loop, "_exit_delta_writes", None) is not None:
        frozen["exit_delta"] = [
            [*delta[:-1], parts.put(delta[-1], f"channel {delta[-2]!r}")]
            for delta in loop._exit_delta_writes
        ]
    if getattr(loop, "_resume_loaded_writes", ()):
        frozen["resume_loaded"] = freeze_pending(loop._resume_loaded_writes, parts)
    if getattr(loop, "_exit_command_writes", ()):
        frozen["exit_command"] = freeze_writes(
            loop._exit_command_writes, parts, "Command(update=...)"
        )
    written = {
        task.id: freeze_writes(task.writes, parts, f"node {task.name!r}")
        for task in loop.tasks.values()
        if task.writes
    }
    if written:
        frozen["task_writes"] = written
    if handlers := _handlers(loop):
        frozen["handlers"] = [[failed, parts.put(error, "an error")] for failed, error in handlers]
    return frozen


def thaw(loop: Any, frozen: Json, parts: PartReader) -> None:
    """Put what :func:`freeze` took into ``loop``, fresh from its constructor. The tasks follow in
    the loop's first tick."""
    for name in _FRESH_SETS:
        setattr(loop, name, set())
    loop.__dict__.update(parts.get(frozen["attributes"], "the loop's own bookkeeping"))
    loop.channels, loop.managed = _thaw_channels(loop.specs, frozen["channels"], parts)
    loop.checkpoint = thaw_checkpoint(frozen["checkpoint"], parts)
    loop.checkpoint_metadata = parts.get(frozen["metadata"], "the checkpoint's metadata")
    loop.checkpoint_pending_writes = thaw_pending(frozen.get("pending", ()), parts)
    loop._exit_delta_writes = (
        [(*delta[:-1], parts.get(delta[-1], delta[-2])) for delta in frozen["exit_delta"]]
        if "exit_delta" in frozen
        else None
    )
    loop._resume_loaded_writes = thaw_pending(frozen.get("resume_loaded", ()), parts) or ()
    loop._exit_command_writes = thaw_writes(frozen.get("exit_command", ()), parts)
    _thaw_configs(loop, frozen, parts)
    loop._graph_lifecycle_events = deque()
    loop._delta_write_futs = []
    loop._error_handler_write_futs = []
    loop._thawed = (frozen, parts)


def _thaw_configs(loop: Any, frozen: Json, parts: PartReader) -> None:
    conf = {**loop.config[lg.CONF], **frozen["coordinates"]}
    conf.pop(lg.CONFIG_KEY_RESUMING, None)
    if frozen["resuming"] is not None:
        conf[lg.CONFIG_KEY_RESUMING] = frozen["resuming"]
    if "resume_map" in frozen:
        conf[lg.CONFIG_KEY_RESUME_MAP] = parts.get(frozen["resume_map"], "Command(resume=...)")
    if "replay" in frozen:
        replay = lg.ReplayState(frozen["replay"][0])
        replay._visited_ns = set(frozen["replay"][1])
        conf[lg.CONFIG_KEY_REPLAY_STATE] = replay
    elif lg.CONFIG_KEY_REPLAY_STATE in conf:
        conf[lg.CONFIG_KEY_REPLAY_STATE] = None
    loop.config = {**loop.config, lg.CONF: conf}

    def at(place: Json) -> Json:
        return {**loop.config, lg.CONF: {**conf, **place}}

    loop.checkpoint_config = at(frozen["checkpoint_config"])
    loop._initial_checkpoint_config = at(frozen["initial_config"])
    previous = frozen.get("previous_config")
    loop.prev_checkpoint_config = None if previous is None else {lg.CONF: previous}


def coordinates(config: Any) -> Json:
    """Where in the saver ``config`` points."""
    return {key: config[lg.CONF][key] for key in _COORDINATES if key in config[lg.CONF]}


# -- channels and checkpoints


def _freeze_channels(channels: Mapping[str, Any], parts: PartWriter) -> Json:
    frozen: Json = {}
    for name, channel in channels.items():
        where = f"channel {name!r}"
        if isinstance(channel, UntrackedValue):
            if channel.value is not lg.MISSING:
                frozen[name] = ["untracked", parts.put(channel.value, where)]
        elif isinstance(channel, DeltaChannel):
            if channel.is_available():
                frozen[name] = ["delta", parts.put(channel.get(), where)]
        elif (value := channel.checkpoint()) is not lg.MISSING:
            frozen[name] = ["value", parts.put(value, where)]
    return frozen


def _thaw_channels(
    specs: Mapping[str, Any], frozen: Json, parts: PartReader
) -> tuple[dict[str, Any], dict[str, Any]]:
    channels: dict[str, Any] = {}
    managed: dict[str, Any] = {}
    for name, spec in specs.items():
        if not isinstance(spec, BaseChannel):
            managed[name] = spec
        elif name not in frozen:
            channels[name] = spec.from_checkpoint(lg.MISSING)
        else:
            kind, ref = frozen[name]
            value = parts.get(ref, f"channel {name!r}")
            if kind == "untracked":
                channel: Any = spec.from_checkpoint(lg.MISSING)
                channel.value = value
            elif kind == "delta":
                channel = spec.from_checkpoint(lg.DeltaSnapshot(value))
            else:
                channel = spec.from_checkpoint(value)
            channels[name] = channel
    return channels, managed


def freeze_checkpoint(checkpoint: Mapping[str, Any], parts: PartWriter) -> Json:
    """A LangGraph checkpoint with its channel values by reference."""
    values = checkpoint["channel_values"]
    return {
        "head": parts.put(
            {key: value for key, value in checkpoint.items() if key != "channel_values"},
            "the checkpoint's head",
        ),
        "values": {name: parts.put(value, f"channel {name!r}") for name, value in values.items()},
    }


def thaw_checkpoint(frozen: Json, parts: PartReader) -> Any:
    """The reverse of :func:`freeze_checkpoint`."""
    head = parts.get(frozen["head"], "the checkpoint's head")
    values = frozen["values"]
    head["channel_values"] = {
        name: parts.get(ref, f"channel {name!r}") for name, ref in values.items()
    }
    return head


# -- writes


def freeze_writes(writes: Any, parts: PartWriter, where: str) -> list[list[Any]]:
    """``(channel, value)`` pairs with their values by reference."""
    return [[channel, parts.put(value, f"{where}, key {channel!r}")] for channel, value in writes]


def thaw_writes(frozen: Any, parts: PartReader) -> list[tuple[str, Any]]:
    """The reverse of :func:`freeze_writes`."""
    return [(channel, parts.get(ref, f"key {channel!r}")) for channel, ref in frozen]


def freeze_pending(pending: Any, parts: PartWriter) -> list[list[Any]]:
    """``(task id, channel, value)`` triples with their values by reference."""
    return [
        [task, channel, parts.put(value, f"a write to {channel!r}")]
        for task, channel, value in pending
    ]


def thaw_pending(frozen: Any, parts: PartReader) -> list[tuple[str, str, Any]]:
    """The reverse of :func:`freeze_pending`."""
    return [(task, channel, parts.get(ref, f"key {channel!r}")) for task, channel, ref in frozen]


# -- error handlers


def _handlers(loop: Any) -> list[tuple[str, BaseException]]:
    """The failed task and its error, for each error-handler task planned in this superstep."""
    found: list[tuple[str, BaseException]] = []
    for task in loop.tasks.values():
        if len(task.path) > 2 and task.path[-2] == "node_error_handler":
            failed = next(
                other
                for other in loop.tasks.values()
                if other.path[:3] == task.path[:-2] and other.id != task.id
            )
            found.append((failed.id, task.config[lg.CONF][lg.CONFIG_KEY_NODE_ERROR].error))
    return found


def make_handler(loop: Any, failed_id: str, error: BaseException) -> Any:
    """The error-handler task for a task of ``loop`` that failed with ``error``; planned anew."""
    failed = loop.tasks[failed_id]
    handler: Any = lg.prepare_node_error_handler_task(
        failed,
        handler_node_name=loop.nodes[failed.name].error_handler_node,
        failed_error=error,
        checkpoint=loop.checkpoint,
        pending_writes=loop.checkpoint_pending_writes,
        processes=loop.nodes,
        channels=loop.channels,
        managed=loop.managed,
        config=failed.config,
        step=loop.step,
        stop=loop.stop,
        store=loop.store,
        checkpointer=loop.checkpointer,
        manager=loop.manager,
        retry_policy=loop.retry_policy,
        cache_policy=loop.cache_policy,
    )
    loop.tasks[handler.id] = handler
    return handler
