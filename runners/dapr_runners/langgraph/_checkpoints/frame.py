"""Documents as bytes: MessagePack of plain values behind a checksum, never pickle."""

import zlib
from collections.abc import Sequence
from types import UnionType
from typing import Any, cast

import ormsgpack

from dapr_runners.state import CorruptRecordError

_MAGIC = b"drc1"
_HEADER = len(_MAGIC) + 4


def pack(value: Any) -> bytes:
    """``value`` (of None, bool, int, float, str, bytes, list, dict) as a document."""
    body = ormsgpack.packb(value)
    return _MAGIC + zlib.crc32(body).to_bytes(4, "big") + body


def packed_size(values: Sequence[Any]) -> int:
    """Bytes that ``values`` take in a document."""
    return len(ormsgpack.packb(list(values)))


def unpack(key: str, document: bytes) -> Any:
    """The value of the ``document`` stored under ``key``.

    Raises:
        CorruptRecordError: the document is not one of ours, or was damaged.
    """
    if not document.startswith(_MAGIC) or len(document) < _HEADER:
        raise CorruptRecordError(key=key, reason="it was not written by this version of DaprSaver")
    body = document[_HEADER:]
    if zlib.crc32(body) != int.from_bytes(document[len(_MAGIC) : _HEADER], "big"):
        raise CorruptRecordError(key=key, reason="its checksum does not match its content")
    return ormsgpack.unpackb(body)


def unpack_fields(key: str, document: bytes, what: str, *kinds: type | UnionType) -> list[Any]:
    """The fields, of these ``kinds``, of the ``document`` stored under ``key``.

    Raises:
        CorruptRecordError: the document is damaged, or is not ``what`` it should be.
    """
    value = unpack(key, document)
    fields = cast("list[Any]", value) if isinstance(value, list) else []
    if len(fields) != len(kinds) or not all(map(isinstance, fields, kinds)):
        raise CorruptRecordError(key=key, reason=f"it is not {what}")
    return fields
