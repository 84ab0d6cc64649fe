"""What a graph's run is started with: as the caller gave it, and as it is stored."""

import contextvars
from dataclasses import dataclass, field
from typing import Any

from langgraph.pregel import Pregel

from dapr_runners.engine import digest
from dapr_runners.langgraph._ending import Ending
from dapr_runners.state import Codec

_PER_PROCESS = ("callbacks", "store")
"""Config entries that are objects of the caller's process. They act where worker and caller are
one process (see :class:`Extras`)."""

_DECISIVE = ("interrupt_before", "interrupt_after")
"""Arguments that decide what a run does."""
_OF_A_CALL = "run_id"
"""Config entry that LangChain makes anew for a call: the id of the root run in tracers."""
_LIVE_MODES = frozenset({"messages", "custom", "tools"})


@dataclass(slots=True)
class Extras:
    """What a run has only in the process that started it, of the call that did: callbacks, run
    control, the context variables of the caller, and its spec, which need not be read again."""

    callbacks: Any = None
    control: Any = None
    context: contextvars.Context | None = None
    ending: Ending = field(default_factory=Ending)
    spec: dict[str, Any] | None = None


@dataclass(slots=True)
class Call:
    """One call of ``stream``: input, config and keyword arguments, in LangGraph's own terms."""

    input: Any
    config: dict[str, Any]
    arguments: dict[str, Any]
    has_context: bool
    context: Any
    saver: bool
    """Whether the graph runs with its saver (or ours, when it has none)."""

    def is_live(self, graph: Pregel[Any, Any, Any, Any]) -> bool:
        """Whether its stream has chunks that a caller wants before their node has ended: those that
        LangGraph itself streams eagerly."""
        mode = self.arguments.get("stream_mode") or graph.stream_mode
        modes = [mode] if isinstance(mode, str) else mode
        subgraphs = bool(self.arguments.get("subgraphs"))
        return graph.stream_eager or subgraphs or not _LIVE_MODES.isdisjoint(modes)

    def pack(self, codec: Codec) -> dict[str, Any]:
        """The call as plain data. Raises UnstorableValueError, naming what cannot be stored."""
        return {
            "input": codec.encode(self.input, "the input"),
            "config": codec.encode(self.config, "config"),
            "arguments": codec.encode(self.arguments, "the arguments of the call"),
            "context": codec.encode(self.context, "context") if self.has_context else None,
            "saver": self.saver,
        }

    @classmethod
    def unpack(cls, codec: Codec, spec: dict[str, Any], run: str) -> "Call":
        """The reverse of :meth:`pack`."""
        decode: Any = codec.decode
        context = spec["context"]
        return cls(
            input=decode(spec["input"], f"the input of {run}"),
            config=decode(spec["config"], f"the config of {run}"),
            arguments=decode(spec["arguments"], f"the arguments of {run}"),
            has_context=context is not None,
            context=None if context is None else decode(context, f"the context of {run}"),
            saver=spec["saver"],
        )

    def fingerprint(self, codec: Codec, packed: dict[str, Any]) -> str:
        """Tells what this call does from others; what it shows of it does not count, nor what
        tracers call it."""
        config: bytes = packed["config"]
        if _OF_A_CALL in self.config:
            named = {key: value for key, value in self.config.items() if key != _OF_A_CALL}
            config = codec.encode(named, "config")
        parts = [packed["input"], config, packed["context"] or b""]
        decisive = [repr(self.arguments.get(name)) for name in _DECISIVE]
        return digest(*(part.hex() for part in parts), *decisive)


def split_config(config: dict[str, Any]) -> tuple[dict[str, Any], Extras]:
    """A config that can be stored, and what belongs to the process."""
    kept = {k: v for k, v in config.items() if k not in _PER_PROCESS and v is not None}
    return kept, Extras(config.get("callbacks"), context=contextvars.copy_context())
