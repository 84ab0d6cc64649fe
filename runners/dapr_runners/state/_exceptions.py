"""How exceptions are packed and rebuilt.

Any exception can be packed: what it carries that cannot be stored becomes a marked text. It is
rebuilt without running its constructor if its class is imported, and as a ``RemoteError`` if not.
An exception and those it came from (``__cause__``, ``__context__``) are one list of nodes, which
refer to each other by index, so that cycles and shared causes keep their shape.
"""

import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any, cast

from ormsgpack import Ext, Fragment

from dapr_runners.state._attributes import slots_of
from dapr_runners.state._classes import builtin_base, name_of
from dapr_runners.state._pydantic import (
    is_validation_error,
    make_validation_error,
    validation_error_parts,
)
from dapr_runners.state._wire import Code, Decoder, Malformed, Reader, Writer, expect, too_deep
from dapr_runners.state.errors import RemoteError

_MAX_CHAIN = 16
_MAX_TRACEBACK = 16_384
_TRACEBACK = "remote_traceback"

_set_args = vars(BaseException)["args"].__set__


def describe_traceback(error: BaseException) -> str:
    """Where ``error`` was raised, as Python prints it, without the error itself. "" if it never
    was. Of an error that came out of a record, the frames in the process that raised it follow
    those in this one."""
    here = "".join(traceback.format_tb(error.__traceback__))
    there = getattr(error, _TRACEBACK, None)
    text = here + there if isinstance(there, str) else here
    return text[-_MAX_TRACEBACK:]


def encode_exception(error: BaseException, writer: Writer) -> Ext:
    """``error``, and what it came from."""
    if _index(writer.open_errors, error) is not None:
        raise too_deep(error)
    chain: list[BaseException] = [error]
    for link in chain:
        for origin in (link.__cause__, link.__context__):
            if origin is not None and _index(chain, origin) is None and len(chain) < _MAX_CHAIN:
                chain.append(origin)
    writer.open_errors += chain
    try:
        return Ext(Code.EXCEPTION, writer.pack(_nodes(chain, writer)))
    finally:
        del writer.open_errors[-len(chain) :]


def _nodes(chain: list[BaseException], writer: Writer) -> list[list[object]]:
    return [
        [
            name_of(type(link)),
            _text(link),
            [_kept(arg, writer) for arg in link.args],
            _attributes(link, writer),
            _members(link, writer),
            _origin(link, writer),
            _index(chain, link.__cause__),
            _index(chain, link.__context__),
            link.__suppress_context__,
        ]
        for link in chain
    ]


def exception_decoder(find: Callable[[str], type | None]) -> Decoder:
    """A decoder that asks ``find`` for the class of a name."""

    def decode(data: bytes, reader: Reader) -> BaseException:
        nodes = [cast("list[Any]", expect(list, node)) for node in reader.unpack_list(data)]
        chain = [_rebuilt(find(node[0]), node) for node in nodes]
        for link, node in zip(chain, nodes, strict=True):
            cause, context, suppress = node[6:]
            link.__cause__ = None if cause is None else chain[cause]
            link.__context__ = None if context is None else chain[context]
            link.__suppress_context__ = suppress
        return chain[0]

    return decode


# -- encoding


def _index(chain: list[BaseException], error: BaseException | None) -> int | None:
    return next((index for index, link in enumerate(chain) if link is error), None)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return ""


def _kept(value: object, writer: Writer) -> Fragment:
    """``value`` packed, or a text that says what it was."""
    data = writer.try_pack(value)
    if data is None:
        try:
            text = repr(value)
        except Exception:
            text = f"a {type(value).__qualname__}"
        data = writer.pack(f"<not stored: {text[:200]}>")
    return Fragment(data)


def _attributes(error: BaseException, writer: Writer) -> dict[str, Fragment]:
    attributes = {name: _kept(value, writer) for name, value in vars(error).items()}
    if raised := describe_traceback(error):
        attributes[_TRACEBACK] = _kept(raised, writer)
    return attributes


def _members(error: BaseException, writer: Writer) -> dict[str, Fragment]:
    """What is kept in C structures and slots, such as OSError.filename; what cannot be stored of it
    stays at its default."""
    packed: dict[str, Fragment] = {}
    for name in _members_of(type(error)):
        value = getattr(error, name, None)
        data = None if value is None else writer.try_pack(value)
        if data is not None:
            packed[name] = Fragment(data)
    return packed


def _members_of(cls: type) -> Mapping[str, types.MemberDescriptorType]:
    members: dict[str, types.MemberDescriptorType] = dict(slots_of(cls))
    for base in cls.__mro__:
        if base not in (BaseException, BaseExceptionGroup):
            members |= {
                name: member
                for name, member in vars(base).items()
                if isinstance(member, types.MemberDescriptorType)
            }
    return members


def _origin(error: BaseException, writer: Writer) -> list[object] | None:
    """What the ``__new__`` of some classes needs."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [group.message, list(group.exceptions)]
    if is_validation_error(type(error)):
        title, errors = validation_error_parts(error)
        return [
            title,
            [{key: _kept(part, writer) for key, part in line.items()} for line in errors],
        ]
    return None


# -- decoding


def _rebuilt(cls: type | None, node: list[Any]) -> BaseException:
    name, text, args, attributes, members, origin = node[:6]
    error = None if cls is None else _made(cls, origin)
    if cls is None or error is None:
        return _remote(name, text, attributes)
    if type(error) is not cls:
        raise Malformed(f"a {name} came out as a {type(error).__qualname__}")
    _set_args(error, tuple(expect(list, args)))
    vars(error).update(expect(dict, attributes))
    known = _members_of(cls)
    for member, value in expect(dict, members).items():
        if member not in known:
            raise Malformed(f"{name} has no attribute {member!r} any more")
        known[member].__set__(error, value)
    try:
        str(error)
    except Exception:
        # What it shows could not be stored with it: no error must fail when it is printed.
        return _remote(name, text, attributes)
    return error


def _made(cls: type, origin: Any) -> BaseException | None:
    if is_validation_error(cls):
        return make_validation_error(*origin)
    base: Any = builtin_base(cls)
    try:
        return base.__new__(cls) if origin is None else base.__new__(cls, *origin)
    except TypeError:
        return None  # a class of C code that only its own library can make


def _remote(name: str, text: str, attributes: dict[str, Any]) -> RemoteError:
    error = RemoteError(type_name=expect(str, name).replace(":", "."), detail=expect(str, text))
    kept = {key: attributes[key] for key in ("__notes__", _TRACEBACK) if key in attributes}
    vars(error).update(kept)
    return error
