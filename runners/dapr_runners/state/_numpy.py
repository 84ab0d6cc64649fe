"""How numpy arrays, scalars and dtypes are packed and rebuilt.

numpy is imported here when a value of it comes up: it is the only library, with pydantic_core, that
reading a record can cause to be imported.
"""

import sys
from collections.abc import Mapping
from typing import Any

from ormsgpack import Ext

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

_FIRST_USER_DTYPE = 256
"""The number from which dtypes are not numpy's own."""


def numpy_encoder(cls: type) -> Encoder | None:
    """The encoder for a numpy class, or None if ``cls`` is not one that can be stored."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None:
        return None
    if cls is numpy.ndarray:
        return _encode_array
    if cls in (numpy.str_, numpy.bytes_):
        return _encode_text
    if issubclass(cls, numpy.generic):
        return _encode_scalar
    if issubclass(cls, numpy.dtype):
        return _encode_dtype
    return None


def _numpy() -> Any:
    import numpy

    return numpy


# -- arrays


def _encode_array(value: Any, writer: Writer) -> Ext:
    order = "F" if value.flags.fnc else "C"
    dtype = value.dtype
    data: Any
    if dtype.kind in "OT":
        data = list(value.ravel(order=order))
    elif dtype.hasobject:
        raise Unstorable(
            value,
            "its records hold Python objects",
            "Store the fields as arrays of their own, or array.tolist().",
        )
    else:
        data = value.tobytes(order=order)
    parts = [_dtype_parts(dtype), list(value.shape), order, data]
    return Ext(Code.NUMPY_ARRAY, writer.pack(parts))


def _decode_array(data: bytes, reader: Reader) -> Any:
    numpy = _numpy()
    dtype_parts, shape, order, content = reader.unpack_list(data, 4)
    dtype = _dtype(dtype_parts)
    shape = tuple(expect(int, length) for length in expect(list, shape))
    if any(length < 0 for length in shape):
        raise Malformed("an array has a negative length")
    if dtype.kind in "OT":
        items = expect(list, content)
        array = numpy.empty(len(items), dtype)
        for index, item in enumerate(items):
            array[index] = item
        return array.reshape(shape, order=order)
    if dtype.hasobject:
        raise Malformed("an array would hold memory addresses")
    array = numpy.ndarray(shape, dtype, buffer=bytearray(expect(bytes, content)), order=order)
    if array.nbytes != len(content):
        raise Malformed("an array has more bytes than its shape")
    return array


# -- scalars


def _encode_scalar(value: Any, writer: Writer) -> Ext:
    dtype = value.dtype
    if dtype.hasobject or dtype.type is not type(value):
        raise Unstorable(value, "it holds Python objects", "Store value.item() instead.")
    return Ext(Code.NUMPY_SCALAR, writer.pack([_dtype_parts(dtype), value.tobytes()]))


def _encode_text(value: Any, writer: Writer) -> Ext:
    # A dtype would cut trailing zeros off.
    plain = str.__str__(value) if isinstance(value, str) else bytes.__bytes__(value)
    return Ext(Code.NUMPY_SCALAR, writer.pack([None, plain]))


def _decode_scalar(data: bytes, reader: Reader) -> Any:
    numpy = _numpy()
    dtype_parts, content = reader.unpack_list(data, 2)
    if dtype_parts is None:
        return numpy.str_(content) if type(content) is str else numpy.bytes_(expect(bytes, content))
    dtype = _dtype(dtype_parts)
    if dtype.hasobject or len(expect(bytes, content)) != dtype.itemsize:
        raise Malformed("a number has another size than its dtype")
    return numpy.ndarray((), dtype, buffer=bytearray(content))[()]


# -- dtypes


def _encode_dtype(value: Any, writer: Writer) -> Ext:
    return Ext(Code.NUMPY_DTYPE, writer.pack(_dtype_parts(value)))


def _decode_dtype(data: bytes, reader: Reader) -> Any:
    return _dtype(reader.unpack(data))


def _dtype_parts(dtype: Any) -> Any:
    """``dtype`` as plain data: its code if it is simple, a dict if it has fields or a shape."""
    if dtype.names is not None:
        fields = [dtype.fields[name] for name in dtype.names]
        parts: Any = {
            "names": list(dtype.names),
            "formats": [_dtype_parts(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "titles": [field[2] if len(field) > 2 else None for field in fields],
            "itemsize": dtype.itemsize,
            "aligned": dtype.isalignedstruct,
        }
    elif dtype.subdtype is not None:
        parts = {"base": _dtype_parts(dtype.subdtype[0]), "shape": list(dtype.shape)}
    elif dtype.kind == "T":
        parts = {"coerce": dtype.coerce}
        if hasattr(dtype, "na_object"):
            parts["na_object"] = dtype.na_object
    else:
        parts = dtype.str
        if dtype.kind in "iu" and _dtype(parts).type is not dtype.type:
            parts = parts[0] + dtype.char  # long long, where long is as wide
        if dtype.kind in "biufcO" and dtype.num < _FIRST_USER_DTYPE:
            return parts
    try:
        same = _dtype(parts) == dtype and _dtype(parts).type is dtype.type
    except Exception:
        same = False
    if not same:
        raise Unstorable(
            dtype, "numpy does not know this dtype by its code", "Convert to a dtype of numpy."
        )
    return parts


def _dtype(parts: Any) -> Any:
    numpy = _numpy()
    if type(parts) is str:
        return numpy.dtype(parts)
    if "base" in expect(dict, parts):
        return numpy.dtype((_dtype(parts["base"]), tuple(parts["shape"])))
    if "coerce" in parts:
        return numpy.dtypes.StringDType(**parts)
    fields = {
        "names": parts["names"],
        "formats": [_dtype(part) for part in parts["formats"]],
        "offsets": parts["offsets"],
        "itemsize": parts["itemsize"],
    }
    if any(title is not None for title in parts["titles"]):
        fields["titles"] = parts["titles"]
    return numpy.dtype(fields, align=parts["aligned"])


DECODERS: Mapping[int, Decoder] = {
    Code.NUMPY_ARRAY: _decode_array,
    Code.NUMPY_SCALAR: _decode_scalar,
    Code.NUMPY_DTYPE: _decode_dtype,
}
