"""Bytes that no encoder wrote raise CorruptRecordError, and nothing else: no other exception, no
hang, no value."""

import random
import sys
import zlib
from typing import Any

import codec_types as ct
import numpy as np
import ormsgpack
import pandas as pd
import pytest
from test_codec_exceptions import PLAIN as EXCEPTIONS
from test_codec_values import CLASSES, LANGCHAIN, PLAIN, STANDARD

from dapr_runners.state import AllowList, Codec, CorruptRecordError, pandas_extensions

CODEC = Codec(
    AllowList.of(modules=["codec_types", "langchain_core.*"], extra=[ct.Plain, ct.Slots]),
    extensions=pandas_extensions(),
)
EVERYTHING: list[Any] = [
    PLAIN,
    STANDARD,
    CLASSES,
    LANGCHAIN,
    EXCEPTIONS,
    [np.arange(6.0).reshape(2, 3), np.float32(1), np.zeros(1, [("a", "i4")]), np.str_("a")],
    pd.DataFrame({"a": [1, None], "b": ["x", "y"]}, index=pd.date_range("2020", periods=2)),
    pd.Series(pd.Categorical(["a", "b"])),
]
SAMPLES = [
    CODEC.encode(value)
    for group in EVERYTHING
    for value in (group.values() if isinstance(group, dict) else [group])
]


def with_checksum(body: bytes) -> bytes:
    """A record an attacker made: changed, and with the right checksum."""
    return b"\x01" + zlib.crc32(body).to_bytes(4, "big") + body


def test_every_truncation_is_noticed() -> None:
    for data in SAMPLES:
        for length in {0, 1, 4, 5, len(data) // 2, len(data) - 1}:
            with pytest.raises(CorruptRecordError):
                CODEC.decode(data[:length])
        with pytest.raises(CorruptRecordError):
            CODEC.decode(data + b"\x00")


def test_every_changed_bit_is_noticed() -> None:
    data = CODEC.encode({"a": (1, "text", ct.Point(2, [1.5]))})
    for bit in range(len(data) * 8):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptRecordError):
            CODEC.decode(bytes(changed))


@pytest.mark.filterwarnings("ignore")  # a changed regular expression may warn
def test_a_record_with_a_forged_checksum_gives_a_value_or_corrupt_record() -> None:
    choose = random.Random(1)
    for data in SAMPLES:
        for _ in range(150):
            body = bytearray(data[5:])
            for _ in range(choose.choice((1, 1, 2, 5))):
                change(body, choose)
            try:
                CODEC.decode(with_checksum(bytes(body)))
            except CorruptRecordError as error:
                assert error.reason


def change(body: bytearray, choose: random.Random) -> None:
    at = choose.randrange(len(body)) if body else 0
    kind = choose.randrange(5)
    if kind == 0 or not body:
        body.insert(at, choose.randrange(256))
    elif kind == 1:
        del body[at]
    elif kind == 2:
        body[at] ^= 1 << choose.randrange(8)
    elif kind == 3:
        body[at] = choose.randrange(256)
    else:
        end = choose.randrange(at, min(len(body), at + 30))
        body[at:at] = body[at:end]


def test_random_bytes_are_corrupt() -> None:
    choose = random.Random(2)
    for _ in range(3000):
        body = choose.randbytes(choose.randrange(60))
        try:
            CODEC.decode(with_checksum(body))
        except CorruptRecordError:
            continue


def test_lies_about_length_are_noticed_at_once() -> None:
    for head in (b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9"):
        for length in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00\xff\xff\xff"):
            with pytest.raises(CorruptRecordError, match="it is not MessagePack"):
                CODEC.decode(with_checksum(head + length))


def test_bombs_do_not_go_off() -> None:
    """Small records whose values would fill the memory, were their parts not checked."""
    pack = ormsgpack.packb
    ten_billion_numbers = ormsgpack.Ext(9, pack([0, 10**10, 1]))
    for code in (5, 6, 7, 8, 25, 40, 43, 60):
        with pytest.raises(CorruptRecordError):
            CODEC.decode(with_checksum(pack(ormsgpack.Ext(code, pack(ten_billion_numbers)))))
    for parts in (
        ["collections:deque", ten_billion_numbers],
        ["collections:deque", [ten_billion_numbers, None]],
        ["codec_types:MyList", ten_billion_numbers],
        ["codec_types:MyBytes", 10**10],
        ["codec_types:MyBytearray", 10**10],
        ["collections:Counter", ten_billion_numbers],
    ):
        with pytest.raises(CorruptRecordError):
            CODEC.decode(with_checksum(pack(ormsgpack.Ext(40, pack(parts)))))
    for parts in (["<f8", [10**10], "C", b""], ["O", [10**10], "C", []], ["<f8", [-1], "C", b""]):
        with pytest.raises(CorruptRecordError):
            CODEC.decode(with_checksum(pack(ormsgpack.Ext(50, pack(parts)))))


def test_an_array_of_memory_addresses_is_not_made() -> None:
    fields = {"names": ["a"], "formats": ["O"], "offsets": [0], "titles": [None], "itemsize": 8}
    for dtype in ("O", "|O8", {"coerce": True}, fields | {"aligned": False}):
        body = ormsgpack.packb(ormsgpack.Ext(50, ormsgpack.packb([dtype, [1], "C", b"\x01" * 8])))
        with pytest.raises(CorruptRecordError, match=r"is expected where|memory addresses"):
            CODEC.decode(with_checksum(body))


def test_nesting_without_end_is_corrupt() -> None:
    body = b"\xc0"
    for _ in range(2000):
        body = ormsgpack.packb(ormsgpack.Ext(5, b"\x91" + body))
    for nested, why in (
        (body, "it nests objects more than 100 levels deep"),
        (b"\x91" * 5000 + b"\xc0", "Recursion limit reached"),
        (b"\x81\xa1a" * 5000 + b"\xc0", "Recursion limit reached"),
    ):
        with pytest.raises(CorruptRecordError, match=why):
            CODEC.decode(with_checksum(nested))


def test_an_attribute_that_is_a_property_is_not_set() -> None:
    data = CODEC.encode(ct.Slots(1))
    changed = with_checksum(data[5:].replace(b"\xa1a\x01", b"\xa1c\x01"))
    with pytest.raises(CorruptRecordError, match="Slots has no slot 'c' any more"):
        CODEC.decode(changed)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"\x02\x00\x00\x00\x00\xc0", "it has format version 2, and this release"),
        (b'{"json": 1}', "it has format version 123"),
        (b"\x01", "its checksum is wrong"),
        (with_checksum(b""), "it is not MessagePack: unexpected end of file"),
        (with_checksum(b"\xd4\x7f\x00"), "it holds a value of the unknown kind 127"),
    ],
)
def test_the_reason_says_what_is_wrong(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        CODEC.decode(data, "the/key")
    assert caught.value.key == "the/key"
    assert caught.value.reason.startswith(reason)


def test_a_record_read_with_the_stack_almost_full_is_not_a_crash() -> None:
    data = CODEC.encode([((((((((1,),),),),),),),)])

    def deep(levels: int) -> Any:
        return deep(levels - 1) if levels else CODEC.decode(data)

    used = len(__import__("inspect").stack())
    with pytest.raises((CorruptRecordError, RecursionError)):
        deep(sys.getrecursionlimit() - used - 12)
