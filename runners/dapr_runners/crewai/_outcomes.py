"""What came of a step, as recorded, and what is known of the steps of a run."""

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class Outcome:
    """What came of a step: ``kind`` is ``value``, ``error``, or ``fatal`` for an error that ends
    the run. ``data`` is encoded; ``took`` seconds, until ``ended`` (since the epoch)."""

    kind: str
    data: bytes
    took: float = 0.0
    ended: float = 0.0
    usage: dict[str, int] | None = None
    messages: list[Json] = field(default_factory=list[Json])
    """To be recorded with it, for others: they are no part of what its program is told."""

    def pack(self) -> Json:
        packed: Json = {self.kind: self.data, "took": self.took, "ended": self.ended}
        if self.usage:
            packed["usage"] = self.usage
        return packed

    @classmethod
    def unpack(cls, packed: Json) -> "Outcome":
        kind = next(kind for kind in ("value", "error", "fatal") if kind in packed)
        return cls(kind, packed[kind], packed["took"], packed["ended"], packed.get("usage"))


@dataclass(slots=True)
class Known:
    """A step that a record tells of: what was asked, and the outcome if there is one."""

    key: str
    digest: str | None = None
    request: Json | None = None
    outcome: Outcome | None = None

    def pack(self) -> Json:
        packed: Json = {"key": self.key}
        if self.digest is not None:
            packed |= {"digest": self.digest, "request": self.request}
        if self.outcome is not None:
            packed["outcome"] = self.outcome.pack()
        return packed

    @classmethod
    def unpack(cls, packed: Json) -> "Known":
        outcome = packed.get("outcome")
        return cls(
            packed["key"],
            packed.get("digest"),
            packed.get("request"),
            None if outcome is None else Outcome.unpack(outcome),
        )
