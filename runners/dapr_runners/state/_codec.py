"""Values to bytes and back, with every type exact, and without pickle.

**What is trusted.** Whoever can write to the state store must not get code run. So a record never
names a function to call. It names classes, which are rebuilt only if the program's ``AllowList``
has them (exceptions: if the program has imported them), by the ``__new__`` of a built-in type and
by setting attributes: no constructor, property or ``__reduce__`` of the class runs (but the default
factory of a field a record lacks, and ``__hash__`` and ``__eq__`` of keys), and no module is
imported (but numpy and pydantic_core, for their own values). A writer of the store can still choose
the values of the fields of allowed classes. Bytes are checked against accidental change. Where the
store has no keys (see ``EncryptionKeys``), they are neither signed nor encrypted: a ``SecretStr``
is stored in clear.

**What is not kept.** That two places of a value hold the same object: each gets its own.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ormsgpack import Ext, packb

from dapr_runners.state import _builtin_types, _enums, _exceptions, _numpy, _pydantic, _times
from dapr_runners.state._allow import AllowList
from dapr_runners.state._classes import name_of
from dapr_runners.state._instances import kind_of
from dapr_runners.state._paths import cycle_in, path_to
from dapr_runners.state._refusals import refusal
from dapr_runners.state._wire import (
    OPTIONS,
    Code,
    Decoder,
    Encoder,
    Kind,
    Malformed,
    Reader,
    Unstorable,
    Writer,
    expect,
    too_deep,
)
from dapr_runners.state.errors import CorruptRecordError, UnstorableValueError, ValueTooLargeError

T = TypeVar("T")

_VERSION = 1
_HEAD = bytes((_VERSION,))
_CHECKSUM = 4  # bytes of CRC-32 after the version


@dataclass(frozen=True, slots=True)
class Extension(Generic[T]):
    """How the instances of one more type are stored.

    ``encode`` gives a value the codec can store, and ``decode`` an equal instance from it. ``name``
    stands for the extension in records and must never change. With ``subclasses``, instances of
    subclasses of ``type`` are given to ``encode`` too, and ``decode`` must give the subclass back.
    """

    type: type[T]
    name: str
    encode: Callable[[T], object]
    decode: Callable[[Any], T]
    subclasses: bool = False

    def __post_init__(self) -> None:
        if self.type in (type(None), bool, int, float, str, bytes, list, dict):
            raise ValueError(
                f"The codec stores every {self.type.__name__} itself, so the extension"
                f" {self.name!r} would not be asked. Define a class of your own for it."
            )


class Codec:
    """Values to bytes and back, with every type exact.

    ``allow``: the classes that may be rebuilt; ``extensions``: how further types are stored, first
    match first; ``max_bytes``: how large what :meth:`encode` gives may be. Threads may share a
    codec.
    """

    def __init__(
        self,
        allow: AllowList,
        *,
        extensions: Sequence[Extension[Any]] = (),
        max_bytes: int | None = None,
    ) -> None:
        self.allow = allow
        self.max_bytes = max_bytes
        self._extensions = tuple(extensions)
        self._named = {extension.name: extension for extension in self._extensions}
        if len(self._named) != len(self._extensions):
            raise ValueError(
                "Two extensions have the same name: records could not tell them apart."
            )
        self._encoders = _Encoders(self._find_encoder)
        self._encoders.update(_builtin_types.ENCODERS)
        self._encoders.update(_times.ENCODERS)
        for extension in reversed(self._extensions):
            self._encoders[extension.type] = _extension_encoder(extension)
        self._decoders = _Decoders(
            {
                **_builtin_types.DECODERS,
                **_times.DECODERS,
                **_numpy.DECODERS,
                Code.INSTANCE: self._decode_instance,
                Code.ENUM: _enums.enum_decoder(self._find_class),
                Code.TYPE: self._decode_type,
                Code.EXCEPTION: _exceptions.exception_decoder(self._find_exception),
                Code.URL: _pydantic.decode_url,
                Code.EXTENSION: self._decode_extension,
            }
        )
        self._kinds: dict[str, Kind] = {}

    def encode(self, value: object, where: str = "value") -> bytes:
        """The bytes of ``value``. Equal plain values give equal bytes.

        Raises :class:`UnstorableValueError` if :meth:`decode` could not give back a value of the
        same types; it names the culprit as a path that starts with ``where``. Raises
        :class:`ValueTooLargeError` if they are more than ``max_bytes`` and ``value`` is no
        exception.
        """
        writer = Writer(self._encoders)
        try:
            body = writer.pack(value)
        except Unstorable as failure:
            raise _error(failure, value, writer.trail, where) from failure.__cause__
        except RecursionError as error:
            raise _error(too_deep(value), value, (), where) from error
        limit = self.max_bytes
        # Not of an error: it must be possible to record what went wrong.
        if limit is not None and len(body) > limit and not isinstance(value, BaseException):
            raise ValueTooLargeError(
                where=where,
                type_name=name_of(type(value)).replace(":", ".").removeprefix("builtins."),
                reason="it is too large",
                remedy="Keep it elsewhere and store where that is, or raise the runner's"
                " max_value_size.",
                size=len(body),
                limit=limit,
            )
        return b"".join((_HEAD, zlib.crc32(body).to_bytes(_CHECKSUM, "big"), body))

    def encode_plain(self, value: object, where: str = "value") -> bytes:
        """As :meth:`encode`, for a value that holds nothing but None, booleans, numbers, strings,
        bytes, lists and dicts: it is not looked through for a bytearray or a memoryview, which
        would come back as bytes."""
        try:
            body = packb(value, option=OPTIONS)
        except TypeError:
            return self.encode(value, where)  # a dict key that is no string, say
        return b"".join((_HEAD, zlib.crc32(body).to_bytes(_CHECKSUM, "big"), body))

    def decode(self, data: bytes, key: str = "value") -> Any:
        """The value :meth:`encode` made ``data`` from.

        Raises :class:`CorruptRecordError` with ``key`` if ``data`` is anything else, or holds an
        instance of a class that is not allowed here.
        """
        if data[:1] != _HEAD:
            raise CorruptRecordError(key, _not_this_version(data))
        body = data[1 + _CHECKSUM :]
        if zlib.crc32(body).to_bytes(_CHECKSUM, "big") != data[1 : 1 + _CHECKSUM]:
            raise CorruptRecordError(key, "its checksum is wrong: bytes were changed or lost")
        try:
            return Reader(self._decoders).unpack(body)
        except Malformed as error:
            raise CorruptRecordError(key, str(error)) from error
        except Exception as error:
            raise CorruptRecordError(key, f"{type(error).__name__}: {error}") from error

    # -- encoding

    def _find_encoder(self, cls: Any) -> Encoder:
        for extension in self._extensions:
            if extension.subclasses and issubclass(cls, extension.type):
                return self._remember(cls, _extension_encoder(extension))
        if issubclass(cls, type):
            return self._remember(cls, self._encode_type)
        if issubclass(cls, BaseException):
            return self._remember(cls, _exceptions.encode_exception)
        if _pydantic.is_url(cls):
            return self._remember(cls, _pydantic.encode_url)
        numpy_encoder = _numpy.numpy_encoder(cls)
        if numpy_encoder is not None:
            return self._remember(cls, numpy_encoder)
        if self.allow.allows(cls):
            if issubclass(cls, _enums.Enum):
                return self._remember(cls, _enums.enum_encoder(cls))
            kind = kind_of(cls)
            if kind is not None:
                return self._remember(cls, _instance_encoder(name_of(cls), kind))
        return self._refuse

    def _remember(self, cls: type, encoder: Encoder) -> Encoder:
        self._encoders[cls] = encoder
        return encoder

    def _refuse(self, value: object, writer: Writer) -> Ext:
        raise refusal(value)

    def _encode_type(self, value: type, writer: Writer) -> Ext:
        if not self.allow.allows(value) and self._find_exception(name_of(value)) is not value:
            raise refusal(value)
        return Ext(Code.TYPE, name_of(value).encode())

    # -- decoding

    def _find_class(self, name: str) -> type:
        cls = self.allow.find(name)
        if cls is None:
            shown = name.replace(":", ".")
            raise Malformed(
                f"it holds a {shown}, which is not a class this runner may rebuild. If it is yours,"
                f" import its module before the runner starts, and pass allow_types=[{shown}] to it"
            )
        return cls

    def _find_exception(self, name: str) -> type | None:
        return self.allow.find_exception(name)

    def _decode_instance(self, data: bytes, reader: Reader) -> object:
        name, *parts = reader.unpack_list(data)
        kind = self._kinds.get(name)
        if kind is None:
            kind = kind_of(self._find_class(expect(str, name)))
            if kind is None:
                raise Malformed(f"a {name} is not an object that can be rebuilt")
            self._kinds[name] = kind
        return kind.give(parts)

    def _decode_type(self, data: bytes, reader: Reader) -> type:
        name = data.decode()
        return self._find_exception(name) or self._find_class(name)

    def _decode_extension(self, data: bytes, reader: Reader) -> object:
        name, structure = reader.unpack_list(data, 2)
        extension = self._named.get(name)
        if extension is None:
            raise Malformed(f"it was written with the extension {name!r}, which is not in use here")
        value = extension.decode(structure)
        exact = type(value) is extension.type
        if not exact and not (extension.subclasses and isinstance(value, extension.type)):
            raise Malformed(f"the extension {name!r} gave a {type(value).__qualname__}")
        return value


class _Encoders(dict[type, Encoder]):
    """The encoder of any type; those not in it yet are asked for."""

    def __init__(self, find: Callable[[type], Encoder]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, cls: type) -> Encoder:
        return self._find(cls)


class _Decoders(dict[int, Decoder]):
    def __missing__(self, code: int) -> Decoder:
        raise Malformed(f"it holds a value of the unknown kind {code}")


def _instance_encoder(name: str, kind: Kind) -> Encoder:
    take = kind.take

    def encode(value: object, writer: Writer) -> Ext:
        return Ext(Code.INSTANCE, writer.pack([name, *take(value)]))

    return encode


def _extension_encoder(extension: Extension[Any]) -> Encoder:
    def encode(value: object, writer: Writer) -> Ext:
        return Ext(Code.EXTENSION, writer.pack([extension.name, extension.encode(value)]))

    return encode


def _error(
    failure: Unstorable, root: object, trail: Sequence[object], where: str
) -> UnstorableValueError:
    chain = [*reversed(trail), failure.value]
    try:
        where = cycle_in(root, where) if failure.is_nesting else path_to(root, chain, where)
    except Exception:
        where = f"something in {where}"
    cls = type(failure.value)
    return UnstorableValueError(
        where=where,
        type_name=f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins."),
        reason=failure.reason,
        remedy=failure.remedy,
    )


def _not_this_version(data: bytes) -> str:
    if not data:
        return "it is empty"
    return (
        f"it has format version {data[0]}, and this release of dapr-runners reads version"
        f" {_VERSION}: it was written by another release, or is not a record"
    )
