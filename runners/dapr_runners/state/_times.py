"""How dates, times and time zones are packed and rebuilt."""

import datetime as dt
import zoneinfo
from collections.abc import Mapping
from typing import Any

from ormsgpack import Ext

from dapr_runners.state._wire import Code, Decoder, Encoder, Reader, Unstorable, Writer, expect


def datetime_parts(value: dt.datetime) -> list[object]:
    """The arguments that make ``value``, ``fold`` last."""
    return [
        value.year,
        value.month,
        value.day,
        value.hour,
        value.minute,
        value.second,
        value.microsecond,
        value.tzinfo,
        value.fold,
    ]


def _encode_datetime(value: dt.datetime, writer: Writer) -> Ext:
    return Ext(Code.DATETIME, writer.pack(datetime_parts(value)))


def _decode_datetime(data: bytes, reader: Reader) -> dt.datetime:
    *parts, fold = reader.unpack_list(data, 9)
    return dt.datetime(*parts, fold=fold)


def _encode_date(value: dt.date, writer: Writer) -> Ext:
    return Ext(Code.DATE, writer.pack([value.year, value.month, value.day]))


def _decode_date(data: bytes, reader: Reader) -> dt.date:
    return dt.date(*(expect(int, part) for part in reader.unpack_list(data, 3)))


def _encode_time(value: dt.time, writer: Writer) -> Ext:
    parts = [value.hour, value.minute, value.second, value.microsecond, value.tzinfo, value.fold]
    return Ext(Code.TIME, writer.pack(parts))


def _decode_time(data: bytes, reader: Reader) -> dt.time:
    *parts, fold = reader.unpack_list(data, 6)
    return dt.time(*parts, fold=fold)


def _encode_timedelta(value: dt.timedelta, writer: Writer) -> Ext:
    return Ext(Code.TIMEDELTA, writer.pack([value.days, value.seconds, value.microseconds]))


def _decode_timedelta(data: bytes, reader: Reader) -> dt.timedelta:
    return dt.timedelta(*(expect(int, part) for part in reader.unpack_list(data, 3)))


def _encode_timezone(value: dt.timezone, writer: Writer) -> Ext:
    # timezone's own pickle support, the only way to tell a given name from a derived one.
    arguments: Any = getattr(value, "__getinitargs__")()  # noqa: B009
    return Ext(Code.TIMEZONE, writer.pack(list(arguments)))


def _decode_timezone(data: bytes, reader: Reader) -> dt.timezone:
    return dt.timezone(*reader.unpack_list(data))


def _encode_zoneinfo(value: zoneinfo.ZoneInfo, writer: Writer) -> Ext:
    if not value.key:
        raise Unstorable(
            value, "it was made from a file and has no key", 'Use ZoneInfo("Area/City").'
        )
    return Ext(Code.ZONEINFO, value.key.encode())


def _decode_zoneinfo(data: bytes, reader: Reader) -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(data.decode())


ENCODERS: Mapping[type, Encoder] = {
    dt.datetime: _encode_datetime,
    dt.date: _encode_date,
    dt.time: _encode_time,
    dt.timedelta: _encode_timedelta,
    dt.timezone: _encode_timezone,
    zoneinfo.ZoneInfo: _encode_zoneinfo,
}

DECODERS: Mapping[int, Decoder] = {
    Code.DATETIME: _decode_datetime,
    Code.DATE: _decode_date,
    Code.TIME: _decode_time,
    Code.TIMEDELTA: _decode_timedelta,
    Code.TIMEZONE: _decode_timezone,
    Code.ZONEINFO: _decode_zoneinfo,
}
