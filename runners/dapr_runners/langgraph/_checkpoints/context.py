"""What the parts of one saver share: keys, serializer, gates, and what is known to be stored."""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol

from dapr_runners.langgraph._checkpoints.gates import Gates
from dapr_runners.langgraph._checkpoints.keys import Keys

V = TypeVar("V")

_REMEMBERED = 512
"""Namespaces, and checkpoints with writes, a process remembers something of."""


class Recent(Generic[V]):
    """The values most recently put, by key. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[str, V] = OrderedDict()

    def get(self, key: str) -> V | None:
        """The value of ``key``, if it is still known."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: str, value: V) -> None:
        """Remember ``value``, and forget the oldest one if there are too many."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > _REMEMBERED:
                self._values.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Stored:
    """The large values of a checkpoint, which its children may refer to.

    They exist as long as the index has seen no removal since ``sweeps``. ``values`` maps a channel
    to its version and the stored form of its value.
    """

    checkpoint_id: str
    sweeps: int
    values: dict[str, tuple[Any, list[Any]]]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all clones of a saver have in common."""

    keys: Keys
    gates: Gates = field(default_factory=Gates)
    stored: Recent[Stored] = field(default_factory=lambda: Recent[Stored]())
    has_writes: Recent[bool] = field(default_factory=lambda: Recent[bool]())


@dataclass(frozen=True, slots=True)
class Context:
    """What a flow needs of its saver."""

    shared: Shared
    serde: SerializerProtocol

    @property
    def keys(self) -> Keys:
        """The keys of the saver."""
        return self.shared.keys

    @property
    def gates(self) -> Gates:
        """The gates of the saver."""
        return self.shared.gates
