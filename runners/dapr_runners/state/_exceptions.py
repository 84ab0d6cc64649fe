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
        return Ext(Code.EXCEPTION, writer.pack([_node(link, chain, writer) for link in chain]))
    finally:
        del writer.open_errors[-len(chain) :]


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


def _node(error: BaseException, chain: list[BaseException], writer: Writer) -> list[object]:
    cls = type(error)
    parts = _Parts(writer)
    args = None if _are_derived(error) else [parts.keep(arg) for arg in error.args]
    attributes = {name: parts.keep(value) for name, value in vars(error).items()}
    if raised := describe_traceback(error):
        attributes[_TRACEBACK] = parts.keep(raised)
    members = {
        name: part
        for name in _members_of(cls)
        if (value := getattr(error, name, None)) is not None
        and (part := parts.keep_whole(value)) is not None
    }
    # No error must fail when it is printed, as one may for want of a part.
    printable = parts.are_whole or _is_printable(cls, args or [], attributes, members)
    return [
        name_of(cls),
        _text(error),
        None if args is None else [packed for packed, _ in args],
        {name: packed for name, (packed, _) in attributes.items()},
        {name: packed for name, (packed, _) in members.items()} if printable else None,
        _origin(error, parts),
        _index(chain, error.__cause__),
        _index(chain, error.__context__),
        error.__suppress_context__,
    ]


_Part = tuple[Fragment, object]
"""A part of an exception: packed, and as it is."""


class _Parts:
    """Packs the parts of one exception. ``are_whole``: whether all could be stored."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.are_whole = True

    def keep(self, value: object) -> _Part:
        """``value``, or a text that says what it was."""
        return self.keep_whole(value) or self._text_for(value)

    def keep_whole(self, value: object) -> _Part | None:
        """``value``, or None if it cannot be stored."""
        packed = self._writer.try_pack(value)
        if packed is None:
            self.are_whole = False
            return None
        return Fragment(packed), value

    def _text_for(self, value: object) -> _Part:
        try:
            text = repr(value)
        except Exception:
            text = f"a {type(value).__qualname__}"
        text = f"<not stored: {text[:200]}>"
        return Fragment(self._writer.pack(text)), text


def _are_derived(error: BaseException) -> bool:
    """Whether ``error.args`` is the message and the errors of a group, which are stored anyway."""
    if not isinstance(error, BaseExceptionGroup) or len(error.args) != 2:
        return False
    group = cast("BaseExceptionGroup[BaseException]", error)
    message, errors = group.args
    same = isinstance(errors, list | tuple) and tuple(cast(Any, errors)) == group.exceptions
    return message is group.message and same


def _is_printable(
    cls: type, args: list[_Part], attributes: dict[str, _Part], members: dict[str, _Part]
) -> bool:
    copy = _made(cls, None)
    if copy is None:
        return True
    try:
        _fill(
            copy,
            [value for _, value in args],
            {name: value for name, (_, value) in attributes.items()},
            {name: value for name, (_, value) in members.items()},
        )
        str(copy)
    except Exception:
        return False
    return True


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


def _origin(error: BaseException, parts: _Parts) -> list[object] | None:
    """What the ``__new__`` of some classes needs."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        errors = list(group.exceptions)
        return [group.message, tuple(errors) if type(error.args[-1]) is tuple else errors]
    if is_validation_error(type(error)):
        title, errors = validation_error_parts(error)
        return [
            title,
            [{key: parts.keep(part)[0] for key, part in line.items()} for line in errors],
        ]
    return None


# -- decoding


def _rebuilt(cls: type | None, node: list[Any]) -> BaseException:
    name, text, args, attributes, members, origin = node[:6]
    error = None if cls is None or members is None else _made(cls, origin)
    if error is None:
        return _remote(name, text, attributes)
    if type(error) is not cls:
        raise Malformed(f"a {name} came out as a {type(error).__qualname__}")
    _fill(error, origin if args is None else args, attributes, members)
    return error


def _fill(error: BaseException, args: object, attributes: object, members: object) -> None:
    _set_args(error, tuple(expect(list, args)))
    vars(error).update(expect(dict, attributes))
    known = _members_of(type(error))
    for name, value in expect(dict, members).items():
        if name not in known:
            raise Malformed(f"{type(error).__qualname__} has no attribute {name!r} any more")
        known[name].__set__(error, value)


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
