"""How values of the built-in and standard library types are packed and rebuilt.

The type is always the exact one: subclasses are in ``_instances``. Times and zones are in
``_times``.
"""

import array
import decimal
import fractions
import ipaddress
import pathlib
import re
import types
import uuid
from collections.abc import Mapping
from typing import Any

from ormsgpack import Ext, Fragment

from dapr_runners.state._wire import (
    Code,
    Decoder,
    Encoder,
    Malformed,
    Reader,
    Unstorable,
    Writer,
    expect,
)

_SINGLETONS = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
_PATHS = {
    cls.__name__: cls
    for cls in (
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
        pathlib.PosixPath,
        pathlib.WindowsPath,
    )
}
_ADDRESSES = {
    cls.__name__: cls
    for cls in (
        ipaddress.IPv4Address,
        ipaddress.IPv6Address,
        ipaddress.IPv4Interface,
        ipaddress.IPv6Interface,
        ipaddress.IPv4Network,
        ipaddress.IPv6Network,
    )
}


# -- numbers


def _encode_int(value: int, writer: Writer) -> Ext:
    length = value.bit_length() // 8 + 1
    return Ext(Code.INT, value.to_bytes(length, "little", signed=True))


def _decode_int(data: bytes, reader: Reader) -> int:
    return int.from_bytes(data, "little", signed=True)


def _encode_complex(value: complex, writer: Writer) -> Ext:
    return Ext(Code.COMPLEX, writer.pack([value.real, value.imag]))


def _decode_complex(data: bytes, reader: Reader) -> complex:
    real, imag = reader.unpack_list(data, 2)
    return complex(expect(float, real), expect(float, imag))


def _encode_decimal(value: decimal.Decimal, writer: Writer) -> Ext:
    return Ext(Code.DECIMAL, str(value).encode())


def _decode_decimal(data: bytes, reader: Reader) -> decimal.Decimal:
    return decimal.Decimal(data.decode())


def _encode_fraction(value: fractions.Fraction, writer: Writer) -> Ext:
    return Ext(Code.FRACTION, writer.pack([value.numerator, value.denominator]))


def _decode_fraction(data: bytes, reader: Reader) -> fractions.Fraction:
    numerator, denominator = reader.unpack_list(data, 2)
    return fractions.Fraction(expect(int, numerator), expect(int, denominator))


# -- text and bytes


def _decode_str(data: bytes, reader: Reader) -> str:
    return data.decode("utf-8", "surrogatepass")


def _decode_bytearray(data: bytes, reader: Reader) -> bytearray:
    return bytearray(data)


def _encode_array(value: "array.array[Any]", writer: Writer) -> Ext:
    return Ext(Code.ARRAY, writer.pack([value.typecode, value.tolist()]))


def _decode_array(data: bytes, reader: Reader) -> "array.array[Any]":
    typecode, items = reader.unpack_list(data, 2)
    make: Any = array.array
    return make(expect(str, typecode), expect(list, items))


# -- containers


def _encode_tuple(value: tuple[object, ...], writer: Writer) -> Ext:
    return Ext(Code.TUPLE, writer.pack(list(value)))


def _decode_tuple(data: bytes, reader: Reader) -> tuple[Any, ...]:
    return tuple(reader.unpack_list(data))


def _decode_dict(data: bytes, reader: Reader) -> dict[Any, Any]:
    flat = reader.unpack_list(data)
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _encode_set(value: set[object], writer: Writer) -> Ext:
    return Ext(Code.SET, writer.pack(_ordered(value, writer)))


def _decode_set(data: bytes, reader: Reader) -> set[Any]:
    return set(reader.unpack_list(data))


def _encode_frozenset(value: frozenset[object], writer: Writer) -> Ext:
    return Ext(Code.FROZENSET, writer.pack(_ordered(value, writer)))


def _decode_frozenset(data: bytes, reader: Reader) -> frozenset[Any]:
    return frozenset(reader.unpack_list(data))


def _ordered(members: "set[Any] | frozenset[Any]", writer: Writer) -> list[Any]:
    """In the same order for equal sets, whatever order they were filled in."""
    if all(type(member) is str for member in members):
        return sorted(members)
    return [Fragment(data) for data in sorted(map(writer.pack, members))]


def _encode_namespace(value: types.SimpleNamespace, writer: Writer) -> Ext:
    return Ext(Code.NAMESPACE, writer.pack(vars(value)))


def _decode_namespace(data: bytes, reader: Reader) -> types.SimpleNamespace:
    namespace = types.SimpleNamespace()
    vars(namespace).update(expect(dict, reader.unpack(data)))
    return namespace


def _encode_mappingproxy(value: "types.MappingProxyType[Any, Any]", writer: Writer) -> Ext:
    return Ext(Code.MAPPINGPROXY, writer.pack(dict(value)))


def _decode_mappingproxy(data: bytes, reader: Reader) -> "types.MappingProxyType[Any, Any]":
    return types.MappingProxyType(expect(dict, reader.unpack(data)))


# -- the rest


def _encode_range(value: range, writer: Writer) -> Ext:
    return Ext(Code.RANGE, writer.pack([value.start, value.stop, value.step]))


def _decode_range(data: bytes, reader: Reader) -> range:
    start, stop, step = reader.unpack_list(data, 3)
    return range(expect(int, start), expect(int, stop), expect(int, step))


def _encode_slice(value: "slice[Any, Any, Any]", writer: Writer) -> Ext:
    return Ext(Code.SLICE, writer.pack([value.start, value.stop, value.step]))


def _decode_slice(data: bytes, reader: Reader) -> "slice[Any, Any, Any]":
    return slice(*reader.unpack_list(data, 3))


def _encode_singleton(value: object, writer: Writer) -> Ext:
    return Ext(Code.SINGLETON, repr(value).encode())


def _decode_singleton(data: bytes, reader: Reader) -> object:
    return _SINGLETONS[data.decode()]


def _encode_uuid(value: uuid.UUID, writer: Writer) -> Ext:
    return Ext(Code.UUID, value.bytes + value.is_safe.name.encode())


def _decode_uuid(data: bytes, reader: Reader) -> uuid.UUID:
    return uuid.UUID(bytes=data[:16], is_safe=uuid.SafeUUID[data[16:].decode()])


def _encode_path(value: pathlib.PurePath, writer: Writer) -> Ext:
    return Ext(Code.PATH, writer.pack([type(value).__name__, str(value)]))


def _decode_path(data: bytes, reader: Reader) -> pathlib.PurePath:
    name, text = reader.unpack_list(data, 2)
    return _PATHS[name](expect(str, text))


def _encode_pattern(value: "re.Pattern[Any]", writer: Writer) -> Ext:
    if value.flags & re.DEBUG:
        raise Unstorable(value, "compiling it again would print", "Compile it without re.DEBUG.")
    return Ext(Code.PATTERN, writer.pack([value.pattern, value.flags]))


def _decode_pattern(data: bytes, reader: Reader) -> "re.Pattern[Any]":
    pattern, flags = reader.unpack_list(data, 2)
    if type(pattern) not in (str, bytes) or expect(int, flags) & re.DEBUG:
        raise Malformed("a regular expression is not one")
    return re.compile(pattern, flags)


def _encode_address(value: object, writer: Writer) -> Ext:
    return Ext(Code.IP, writer.pack([type(value).__name__, str(value)]))


def _decode_address(data: bytes, reader: Reader) -> object:
    name, text = reader.unpack_list(data, 2)
    return _ADDRESSES[name](expect(str, text))


ENCODERS: Mapping[type, Encoder] = {
    int: _encode_int,
    complex: _encode_complex,
    decimal.Decimal: _encode_decimal,
    fractions.Fraction: _encode_fraction,
    array.array: _encode_array,
    tuple: _encode_tuple,
    set: _encode_set,
    frozenset: _encode_frozenset,
    types.SimpleNamespace: _encode_namespace,
    types.MappingProxyType: _encode_mappingproxy,
    range: _encode_range,
    slice: _encode_slice,
    type(Ellipsis): _encode_singleton,
    type(NotImplemented): _encode_singleton,
    uuid.UUID: _encode_uuid,
    re.Pattern: _encode_pattern,
    **dict.fromkeys(_PATHS.values(), _encode_path),
    **dict.fromkeys(_ADDRESSES.values(), _encode_address),
}

DECODERS: Mapping[int, Decoder] = {
    Code.INT: _decode_int,
    Code.STR: _decode_str,
    Code.BYTEARRAY: _decode_bytearray,
    Code.COMPLEX: _decode_complex,
    Code.TUPLE: _decode_tuple,
    Code.DICT: _decode_dict,
    Code.SET: _decode_set,
    Code.FROZENSET: _decode_frozenset,
    Code.RANGE: _decode_range,
    Code.SLICE: _decode_slice,
    Code.SINGLETON: _decode_singleton,
    Code.DECIMAL: _decode_decimal,
    Code.FRACTION: _decode_fraction,
    Code.UUID: _decode_uuid,
    Code.PATH: _decode_path,
    Code.PATTERN: _decode_pattern,
    Code.IP: _decode_address,
    Code.NAMESPACE: _decode_namespace,
    Code.ARRAY: _decode_array,
    Code.MAPPINGPROXY: _decode_mappingproxy,
}
