"""Values of channels and writes in their stored form.

A small value is kept in the record that has it: ``[serializer type, bytes]``. A large one is kept
in documents of its own, to which later checkpoints refer: ``[serializer type, name, number of
parts]``. Parts keep any value within the largest message a sidecar takes (4 MiB by default).
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from langgraph.checkpoint.serde.base import SerializerProtocol

from dapr_runners.langgraph._checkpoints.frame import pack, unpack
from dapr_runners.langgraph._checkpoints.keys import Scope, name
from dapr_runners.state import CorruptRecordError, UnstorableValueError

FRESH_BYTES = 128 * 1024
"""How large a value that has just changed may be to be kept in its record. It is likely to change
again, and on daprd with SQLite a further document takes as long as 130 KB more in the record."""
SETTLED_BYTES = 1024
"""How large a value that did not change may be to be kept in its record once more."""
RECORD_BYTES = 1 << 20
"""How much a record may keep of all its values."""
PART_BYTES = 1 << 20
"""How large a part of a large value is."""

StoredForm: TypeAlias = list[Any]


def dump(serde: SerializerProtocol, value: Any, where: str) -> tuple[str, bytes]:
    """``value`` as the serializer's type and bytes. ``where`` says whose value it is.

    Raises:
        UnstorableValueError: the serializer refuses the value.
    """
    try:
        return serde.dumps_typed(value)
    except (TypeError, ValueError, RecursionError) as error:
        cls = cast("type[object]", type(value))
        raise UnstorableValueError(
            where=where,
            type_name=f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins."),
            reason=str(error),
            remedy="Keep it out of the graph's state, or give DaprSaver a serde that can store it.",
        ) from error


def load(serde: SerializerProtocol, kind: str, data: bytes, key: str) -> Any:
    """The value that ``dump`` made ``kind`` and ``data`` of; ``key`` is the record it was in.

    Raises:
        CorruptRecordError: the serializer cannot read it.
    """
    try:
        return serde.loads_typed((kind, data))
    except Exception as error:
        raise CorruptRecordError(key=key, reason=f"{type(error).__name__}: {error}") from error


def store(
    scope: Scope, kind: str, data: bytes, checkpoint_id: str, room: int
) -> tuple[StoredForm, dict[str, bytes]]:
    """The stored form of a dumped value of a checkpoint, and the documents to write for it if it
    does not fit the ``room`` in its record.

    The keys of the documents belong to the checkpoint, so that a removal of others never races
    with it, and to the content, so that writing another value does not touch what a record refers
    to.
    """
    if len(data) <= room:
        return [kind, data], {}
    value_name = f"{name(checkpoint_id)}/{scope.hashed(scope.index, data)}"
    parts = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    documents = {scope.value(value_name, n): pack(part) for n, part in enumerate(parts)}
    return [kind, value_name, len(parts)], documents


def part_keys(scope: Scope, form: StoredForm) -> Iterator[str]:
    """The keys of the documents that ``form`` refers to."""
    if len(form) == 3:
        yield from (scope.value(form[1], part) for part in range(form[2]))


def restore(
    serde: SerializerProtocol,
    scope: Scope,
    form: StoredForm,
    parts: Mapping[str, bytes],
    key: str,
) -> Any:
    """The value with stored ``form``, from its documents; ``key`` is the record it is in.

    Raises:
        CorruptRecordError: a document is missing or damaged.
    """
    if len(form) == 2:
        return load(serde, form[0], form[1], key)
    data: list[bytes] = []
    for part in part_keys(scope, form):
        if part not in parts:
            raise CorruptRecordError(key=part, reason=f"{key} refers to it and it is missing")
        data.append(cast(bytes, unpack(part, parts[part])))
    return load(serde, form[0], b"".join(data), scope.value(form[1], 0))
