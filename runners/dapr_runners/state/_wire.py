"""The bytes of one value: MessagePack in one C call for plain data, extension types for all else.

``ormsgpack`` packs None, bool, int, float, str, bytes, list and dict by itself. It would turn
bytearray and memoryview into bytes in silence, so output that may hold a binary string is checked.
It refuses dict keys that are not strings, and strings with lone surrogates: those are then packed
as extension types.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ormsgpack
from ormsgpack import Ext, packb, unpackb

MAX_NESTING = 100
"""Objects within objects (plain lists and dicts do not count) a value may have."""

_MAX_PLAIN_NESTING = 255
"""What ormsgpack allows lists and dicts directly within each other."""
OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
"""How ``packb`` is called: what it would change in silence is passed to an encoder."""


class Code:
    """The extension type of each kind of value. Numbers are never reused: old records stay."""

    INT = 1
    STR = 2
    BYTEARRAY = 3
    COMPLEX = 4
    TUPLE = 5
    DICT = 6
    SET = 7
    FROZENSET = 8
    RANGE = 9
    SLICE = 10
    SINGLETON = 11
    DATETIME = 12
    DATE = 13
    TIME = 14
    TIMEDELTA = 15
    TIMEZONE = 16
    ZONEINFO = 17
    DECIMAL = 18
    FRACTION = 19
    UUID = 20
    PATH = 21
    PATTERN = 22
    IP = 23
    NAMESPACE = 24
    ARRAY = 25
    MAPPINGPROXY = 26
    INSTANCE = 40
    ENUM = 41
    TYPE = 42
    EXCEPTION = 43
    URL = 44
    NUMPY_ARRAY = 50
    NUMPY_SCALAR = 51
    NUMPY_DTYPE = 52
    EXTENSION = 60


class Unstorable(Exception):
    """``value`` cannot be packed. ``reason`` continues "cannot be stored: "; ``remedy`` is a
    sentence; ``is_nesting`` tells that ``value`` is only where a cycle or a chain grew too long."""

    def __init__(
        self, value: object, reason: str, remedy: str, *, is_nesting: bool = False
    ) -> None:
        super().__init__(reason)
        self.value = value
        self.is_nesting = is_nesting
        self.reason = reason
        self.remedy = remedy


class Malformed(Exception):
    """The bytes are not what an encoder writes; the argument says why."""


class Writer:
    """Packs one value. ``encoders`` gives the encoder of any type; ``trail`` holds, after a
    failure, the objects around the failing one, innermost first. ``open_errors`` is for the encoder
    of exceptions: those that are being packed."""

    __slots__ = ("_encoders", "_failure", "_nesting", "open_errors", "trail")

    def __init__(self, encoders: Mapping[type, "Encoder"]) -> None:
        self._encoders = encoders
        self._failure: BaseException | None = None
        self._nesting = 0
        self.trail: list[object] = []
        self.open_errors: list[BaseException] = []

    def pack(self, value: object) -> bytes:
        """The bytes of ``value``, without a header."""
        if self._nesting > MAX_NESTING:
            raise too_deep(value)
        self._nesting += 1
        try:
            data = packb(value, default=self._default, option=OPTIONS)
        except TypeError:
            data = self._pack_lowered(value)
        else:
            # 0xC4, 0xC5 and 0xC6 introduce binary strings; most output has none of these bytes.
            if (b"\xc4" in data or b"\xc5" in data or b"\xc6" in data) and _holds_buffer(value):
                data = self._pack_lowered(value)
        finally:
            self._nesting -= 1
        return data

    def try_pack(self, value: object) -> bytes | None:
        """The bytes of ``value``, or None if it cannot be stored."""
        try:
            return self.pack(value)
        except Unstorable:
            self._failure = None
            self.trail.clear()
            return None

    def _default(self, value: object) -> Ext:
        # ormsgpack drops what is raised here, interrupts too, and raises a TypeError of its own.
        try:
            return self._encoders[type(value)](value, self)
        except Unstorable as error:
            self._failure = error
            self.trail.append(value)
            raise
        except RecursionError:
            self._failure = too_deep(value)
            raise
        except Exception as error:
            self._failure = _failed(value, error)
            raise
        except BaseException as error:
            self._failure = error
            raise

    def _pack_lowered(self, value: object) -> bytes:
        if self._failure is not None:
            raise self._failure
        lowered = _lower(value, self, 0)
        try:
            return packb(lowered, default=self._default, option=OPTIONS)
        except TypeError as error:
            if self._failure is not None:
                raise self._failure from None
            raise _failed(value, error) from error


class Reader:
    """Unpacks one value. ``decoders`` gives the decoder of any extension code."""

    __slots__ = ("_decoders", "_failure", "_nesting")

    def __init__(self, decoders: Mapping[int, "Decoder"]) -> None:
        self._decoders = decoders
        self._failure: BaseException | None = None
        self._nesting = 0

    def unpack(self, data: bytes) -> Any:
        """The value :meth:`Writer.pack` made ``data`` from."""
        if self._nesting > MAX_NESTING:
            raise Malformed(f"it nests objects more than {MAX_NESTING} levels deep")
        self._nesting += 1
        try:
            return unpackb(data, ext_hook=self._decode)
        except ValueError as error:
            if self._failure is not None:
                raise self._failure from None
            raise Malformed(f"it is not MessagePack: {error}") from None
        finally:
            self._nesting -= 1

    def unpack_list(self, data: bytes, length: int | None = None) -> list[Any]:
        """As :meth:`unpack`, of a list, of ``length`` items if given."""
        value: list[Any] = expect(list, self.unpack(data))
        if length is not None and len(value) != length:
            raise Malformed(f"a list of {length} items has {len(value)}")
        return value

    def _decode(self, code: int, data: bytes) -> object:
        try:
            return self._decoders[code](data, self)
        except BaseException as error:
            self._failure = self._failure or error
            raise


Encoder = Callable[[Any, Writer], Ext]
Decoder = Callable[[bytes, Reader], object]


@dataclass(frozen=True, slots=True)
class Kind:
    """How instances of one class are stored: ``take`` gives the parts of an instance, ``give`` an
    instance with these parts."""

    take: Callable[[Any], list[Any]]
    give: Callable[[list[Any]], object]


def expect(cls: type, value: Any) -> Any:
    """``value``, whose type must be ``cls`` itself."""
    if type(value) is not cls:
        raise Malformed(f"a {cls.__name__} is expected where a {type(value).__name__} is")
    return value


def _lower(value: Any, writer: Writer, nesting: int) -> Any:
    """``value`` with what ormsgpack refuses or changes replaced by extension types, through lists
    and dicts only."""
    if nesting > _MAX_PLAIN_NESTING:
        raise too_deep(value)
    kind = _type(value)
    if kind is dict:
        if all(map(_is_plain_key, value)):
            return {key: _lower(item, writer, nesting + 1) for key, item in value.items()}
        return Ext(Code.DICT, writer.pack([part for pair in value.items() for part in pair]))
    if kind is list:
        return [_lower(item, writer, nesting + 1) for item in value]
    if kind is str:
        if _is_plain_key(value):
            return value
        return Ext(Code.STR, value.encode("utf-8", "surrogatepass"))
    if kind is bytearray:
        return Ext(Code.BYTEARRAY, bytes(value))
    if kind is memoryview:
        raise Unstorable(
            value,
            "it is a view of memory that something else owns",
            "Store bytes(view) instead.",
        )
    return value


def _type(value: object) -> Any:
    return type(value)


def _is_plain_key(key: object) -> bool:
    if type(key) is not str:
        return False
    if key.isascii():
        return True
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _holds_buffer(value: Any) -> bool:
    kind = _type(value)
    if kind is not dict and kind is not list:
        return kind is bytearray or kind is memoryview
    items = value.values() if kind is dict else value
    kinds = set(map(type, items))
    if bytearray in kinds or memoryview in kinds:
        return True
    return (dict in kinds or list in kinds) and any(map(_holds_buffer, items))


def too_deep(value: object) -> Unstorable:
    """What to raise for a ``value`` that is part of itself, or of a chain too long."""
    return Unstorable(
        value,
        f"it contains itself, or nests more than {MAX_NESTING} objects"
        f" or {_MAX_PLAIN_NESTING} lists and dicts",
        "Store identifiers instead of references back, and a flat list instead of a chain.",
        is_nesting=True,
    )


def _failed(value: object, error: Exception) -> Unstorable:
    failure = Unstorable(
        value,
        f"encoding it failed with {type(error).__name__}: {error}",
        "Mend what raised that, or store plain data instead.",
    )
    failure.__cause__ = error
    return failure
