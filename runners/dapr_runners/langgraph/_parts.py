"""The values of a record, each encoded once.

A snapshot, a checkpoint in the outbox and a task's writes often hold the very same object. Here a
value is known by identity while a record is made, and stored by reference when it is large, or was
in the record before: so an unchanged value costs a reference a step.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from dapr_runners.state import Artifacts, Codec

Ref: TypeAlias = bytes | str
"""Encoded bytes, or the content hash of an artifact."""

_REPEATED = 1024
"""A value of at least this many bytes becomes an artifact when it is seen the second time."""


class PartWriter:
    """Encodes values for one record.

    ``before`` are the content hashes of the previous record's larger values; ``artifacts`` are
    those of the run.
    """

    def __init__(self, codec: Codec, before: set[str], artifacts: Artifacts) -> None:
        self._codec = codec
        self._before = before
        self._stored = artifacts
        self._seen: dict[int, tuple[Any, Ref]] = {}
        self.hashes: set[str] = set()
        self.artifacts: dict[str, bytes] = {}
        self.used: set[str] = set()

    def put(self, value: Any, where: str) -> Ref:
        """A reference to ``value``; the same object gives the same reference."""
        known = self._seen.get(id(value))
        if known is not None:
            return known[1]
        ref = self._store(self._codec.encode(value, where))
        self._seen[id(value)] = (value, ref)
        return ref

    def _store(self, data: bytes) -> Ref:
        if len(data) < _REPEATED:
            return data
        name = self._stored.name(data)
        self.hashes.add(name)
        is_stored = self._stored.is_known(name)
        if len(data) <= self._stored.limit and name not in self._before and not is_stored:
            return data
        self.used.add(name)
        if not is_stored:
            self.artifacts[name] = data
        return name


class PartReader:
    """Decodes the values of a record, given the artifacts it refers to."""

    def __init__(self, codec: Codec, artifacts: Mapping[str, bytes]) -> None:
        self._codec = codec
        self._artifacts = artifacts

    def get(self, ref: Ref, where: str) -> Any:
        """The value behind ``ref``: a new object each time."""
        data = self._artifacts[ref] if isinstance(ref, str) else ref
        return self._codec.decode(data, where)
