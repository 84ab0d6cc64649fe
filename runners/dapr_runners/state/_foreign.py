"""Values of any record, for who looks at runs without the program that has their classes."""

import base64
import dataclasses
import datetime as dt
import json
import math
from collections.abc import Mapping, Set
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from dapr_runners.state._allow import AllowList
from dapr_runners.state._codec import Codec
from dapr_runners.state._exceptions import describe_traceback
from dapr_runners.state._wire import Code, Decoder, Reader
from dapr_runners.state.errors import RemoteError

_TEXT = 2000
"""Characters of what is shown of an object that is no plain data."""
_AS_TEXT = (dt.date, dt.time, dt.timedelta, UUID, PurePath)


class Foreign:
    """A value of the class ``type_name`` (``module.Class``), which is not rebuilt here. ``content``
    is what is stored of it; if that is a dict, its entries are attributes too."""

    __slots__ = ("content", "type_name")

    def __init__(self, type_name: str, content: Any) -> None:
        self.type_name = type_name
        self.content = content

    def __getattr__(self, name: str) -> Any:
        content = cast(dict[str, Any], self.content)
        if name.startswith("__") or not isinstance(self.content, dict) or name not in content:
            raise AttributeError(name)
        return content[name]

    def __repr__(self) -> str:
        return f"{self.type_name}({self.content!r})"


class ReadingCodec(Codec):
    """Reads every record without a program's classes: what it would need one for becomes a
    :class:`Foreign`. It writes plain values, and no :class:`Foreign`."""

    def __init__(self) -> None:
        super().__init__(AllowList())
        for code in (Code.NUMPY_ARRAY, Code.NUMPY_SCALAR, Code.NUMPY_DTYPE, Code.URL):
            self._decoders[code] = _where_installed(self._decoders[code])
        self._decoders[Code.ENUM] = _decode_enum

    def _decode_instance(self, data: bytes, reader: Reader) -> object:
        name, *parts = reader.unpack_list(data)
        return Foreign(_dotted(name), _content(parts))

    def _decode_type(self, data: bytes, reader: Reader) -> Any:
        return Foreign("type", _dotted(data.decode()))

    def _decode_extension(self, data: bytes, reader: Reader) -> object:
        name, structure = reader.unpack_list(data, 2)
        return Foreign(name, structure)


def as_json(value: Any) -> Any:
    """``value`` as what JSON has, for people to read: objects become dicts with a ``type``."""
    if value is None or isinstance(value, (bool, int, str)):
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray)):
        return {"type": type(value).__name__, "base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value).items()
        return {key if isinstance(key, str) else str(key): as_json(item) for key, item in items}
    if isinstance(value, (list, tuple, Set)):
        return [as_json(item) for item in cast(list[Any], value)]
    if isinstance(value, Foreign):
        content: Any = as_json(value.content)
        own = cast(dict[str, Any], content if isinstance(content, dict) else {"value": content})
        return {"type": value.type_name, **{k: v for k, v in own.items() if k != "type"}}
    if isinstance(value, BaseException):
        return describe_error(value)
    if isinstance(value, _AS_TEXT):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {"type": type(value).__qualname__, **as_json(fields)}
    return {"type": type(value).__qualname__, "text": str(value)[:_TEXT]}


def as_size(value: Any) -> Any:
    """What :func:`as_json` gives, but for the value itself: its type, and its size in JSON."""
    if isinstance(value, BaseException):
        return {**describe_error(value), "message": as_size(str(value))}
    name = value.type_name if isinstance(value, Foreign) else type(value).__name__
    return {"type": name, "size": len(json.dumps(as_json(value)))}


def describe_error(error: BaseException) -> dict[str, str]:
    """``error_type`` and ``message`` of an exception, and its ``stack_trace``, also of one whose
    class is not known here."""
    is_remote = isinstance(error, RemoteError)
    return {
        "error_type": error.type_name if is_remote else type(error).__name__,
        "message": error.detail if is_remote else str(error),
        "stack_trace": describe_traceback(error),
    }


def _dotted(name: str) -> str:
    return name.replace(":", ".").removeprefix("builtins.")


def _content(parts: list[Any]) -> Any:
    """What is stored of an instance: the attributes and slots of a plain one, the fields and extra
    fields of a pydantic model, the value of a subclass of a built-in type."""
    if len(parts) == 4:
        return _merged(parts[0], parts[2])
    if len(parts) == 2 and all(one is None or isinstance(one, dict) for one in parts):
        return _merged(*parts)
    return parts[0]


def _merged(attributes: dict[str, Any] | None, more: dict[str, Any] | None) -> dict[str, Any]:
    return {**(attributes or {}), **(more or {})}


def _decode_enum(data: bytes, reader: Reader) -> object:
    name, key, *value = reader.unpack_list(data)
    return Foreign(_dotted(name), key if key is not None else value[0])


def _where_installed(decode: Decoder) -> Decoder:
    """Values of libraries that this process may not have."""

    def read(data: bytes, reader: Reader) -> object:
        try:
            return decode(data, reader)
        except ImportError as error:
            return Foreign(str(error.name), None)

    return read
