"""Every value comes back as what it was, types and all."""

import array
import collections
import datetime as dt
import decimal
import fractions
import ipaddress
import pathlib
import re
import types
import uuid
import zoneinfo
from typing import Any

import codec_types as ct
import pydantic
import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from same import assert_same

from dapr_runners.state import AllowList, Codec

CODEC = Codec(AllowList.of(modules=["codec_types", "langchain_core.*"], extra=[ct.Plain, ct.Slots]))
PARIS = zoneinfo.ZoneInfo("Europe/Paris")

awkward = ct.Awkward(a=1, seed=5)
unset = ct.Awkward.__new__(ct.Awkward)
unset.a = 1
cached = ct.Cached(1)
assert cached.lock
private = ct.Private(a=1)
private._hidden = {(1, 2): {3}}
computed = ct.Computed(a=2)
assert computed.double == 4
ordered = collections.OrderedDict(a=1, b=2)
ordered.move_to_end("a")

PLAIN: dict[str, Any] = {
    "None": None,
    "True": True,
    "zero": 0,
    "int 64 bits": 2**64 - 1,
    "int -64 bits": -(2**63),
    "int > 64 bits": 2**64,
    "int < -64 bits": -(2**63) - 1,
    "int 5000 digits": 10**5000,
    "nan": float("nan"),
    "inf": float("-inf"),
    "-0.0": -0.0,
    "float": 0.1,
    "complex": complex(-0.0, float("inf")),
    "str": "grüße \U0001f600 \x00",
    "lone surrogate": "a\ud800",
    "bytes": b"\x00\xff",
    "bytearray": bytearray(b"\xc4\x01x"),
    "list": [1, [2, []]],
    "tuple": (1, (2,), ()),
    "dict in order": {"b": 1, "a": 2},
    "int keys": {2: "a", 1: "b"},
    "tuple keys": {(1, (2,)): "a"},
    "mixed keys": {None: 1, "a": 2, 1.5: 3, True: 4, b"x": 5, ct.Color.RED: 6, ct.MyStr("s"): 7},
    "frozenset key": {frozenset((1,)): 1},
    "surrogate key": {"\udfff": 1},
    "dataclass key": {ct.Frozen(1): 1},
    "set": {1, "a", (2,), None},
    "frozenset": frozenset((b"x", frozenset())),
    "set of text": set("abcdefgh"),
    "Ellipsis": ...,
    "NotImplemented": NotImplemented,
    "range": range(5, 1, -2),
    "slice": slice(1, None, (2,)),
    "namespace": types.SimpleNamespace(a=(1,)),
    "mappingproxy": types.MappingProxyType({1: (2,)}),
    "array": array.array("d", [1.5, 2]),
    "array of bytes": array.array("b", b"ab"),
    "type": int,
    "types": [ct.Point, collections.OrderedDict, ValueError, type(None), ct.Needy],
}

STANDARD: dict[str, Any] = {
    "deque": collections.deque([1, (2,)]),
    "deque maxlen": collections.deque([1, 2], maxlen=2),
    "OrderedDict": ordered,
    "defaultdict": collections.defaultdict(list, {1: [2]}),
    "defaultdict of a class": collections.defaultdict(ct.MyList),
    "defaultdict None": collections.defaultdict(None, a=1),
    "Counter": collections.Counter("aab"),
    "ChainMap": collections.ChainMap({"a": 1}, {2: (3,)}),
    "UserDict": collections.UserDict({1: 2}),
    "datetime": dt.datetime(2020, 1, 2, 3, 4, 5, 6),
    "datetime utc": dt.datetime(2020, 1, 2, tzinfo=dt.UTC),
    "datetime zone": dt.datetime(2020, 7, 2, tzinfo=PARIS),
    "datetime fold": dt.datetime(2020, 10, 25, 2, 30, fold=1, tzinfo=PARIS),
    "datetime offset": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5), "EST")),
    "date": dt.date.min,
    "time": dt.time(1, 2, 3, 4, fold=1, tzinfo=dt.UTC),
    "timedelta": dt.timedelta(days=-1, seconds=2, microseconds=3),
    "timezone": dt.timezone(dt.timedelta(seconds=1)),
    "zone": PARIS,
    "Decimal": decimal.Decimal("1.10"),
    "Decimal sNaN": [str(decimal.Decimal("sNaN12")), decimal.Decimal("-0E-5")],
    "Fraction": fractions.Fraction(-1, 3),
    "UUID": uuid.uuid4(),
    "UUID 1": uuid.uuid1(),
    "Path": pathlib.Path("/a/../b"),
    "PurePath": pathlib.PureWindowsPath("c:/a"),
    "Pattern": re.compile("(?i)a+", re.MULTILINE),
    "Pattern of bytes": re.compile(rb"\x00[a]"),
    "IPv4": ipaddress.ip_address("1.2.3.4"),
    "IPv6": ipaddress.ip_address("fe80::1%eth0"),
    "networks": [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_interface("::1/64")],
}

CLASSES: dict[str, Any] = {
    "Enum": [ct.Color.RED, ct.Color.CRIMSON, ct.Outer.Shade.DARK],
    "Enum mixed in": [ct.Word.A, ct.Mixed.A, ct.Number.ONE],
    "Flag": [ct.Right.READ, ct.Right.ALL, ct.Right(0), ct.Bits.A | ct.Bits.B],
    "IntFlag beyond members": ct.Bits(12),
    "dataclass": ct.Point(1, [(1,), ct.Point(2)]),
    "dataclass nested": ct.Outer.Inner(1),
    "dataclass frozen": ct.Frozen(1),
    "dataclass slots": [ct.FrozenSlots(1, b=(2,)), ct.SlotsChild(1, z=4)],
    "dataclass awkward": [awkward, unset],
    "dataclass generic": ct.Box((1,)),
    "dataclass with a new attribute": ct.with_attribute(ct.Point(1)),
    "pydantic": ct.Zoo(
        animal=ct.Dog(name="d"), cage=(1, 2), inner=ct.Zoo(animal=ct.Animal(name="a"))
    ),
    "pydantic nested class": ct.Outer.Model(a=1),
    "pydantic private": private,
    "pydantic extra": ct.Extra(b=(1,)),
    "pydantic not valid": ct.Strict.model_construct(a=(1,)),
    "pydantic not run again": ct.Strict(a=1),
    "pydantic root": ct.Rows([1]),
    "pydantic generic": ct.IntPage(items=[1]),
    "pydantic secrets": ct.Secrets(
        key="k",
        url="https://u:p@example.com/a?b=c#d",
        dsn="postgres://u:p@h1:1,h2:2/db",
    ),
    "pydantic dataclass": ct.Checked(a=1),
    "pydantic v1": ct.Old(x=1),
    "SecretStr": pydantic.SecretStr("s"),
    "attrs": [ct.Attrs(1), ct.AttrsDict(1)],
    "plain class": ct.Plain((1, 2)),
    "slots, one unset": ct.Slots((1,)),
    "namedtuple": [ct.NT(1, (2,)), ct.Typed(1, (2,))],
    "int": ct.MyInt(2**70),
    "float": ct.MyFloat("nan"),
    "complex": ct.MyComplex(1, 2),
    "bytes": ct.MyBytes(b"\xff"),
    "frozenset": ct.MyFrozenset((1,)),
    "Decimal": ct.MyDecimal("1.0"),
    "datetime": ct.MyDatetime(2020, 10, 25, 2, 30, fold=1, tzinfo=PARIS),
    "date": ct.MyDate(2020, 1, 1),
    "time": ct.MyTime(1, fold=1),
    "timedelta": ct.MyTimedelta(days=1),
    **{
        f"{value.__class__.__name__} with an attribute": ct.with_attribute(value)
        for value in (
            ct.MyStr("a\ud800"),
            ct.MyList([(1,)]),
            ct.MyTuple((1,)),
            ct.MyDict({1: 2, "a": (3,)}),
            ct.MySet((1,)),
            ct.MyBytearray(b"\x00"),
            ct.MyDeque([1], maxlen=3),
            ct.MyOrdered({2: 1, 1: 2}),
            ct.MyDefault(int, a=1),
            ct.MyCounter("aab"),
        )
    },
}

LANGCHAIN: dict[str, Any] = {
    "HumanMessage": HumanMessage("x", id="1", name="n"),
    "AIMessage": AIMessage(
        "x",
        tool_calls=[{"name": "f", "args": {"a": (1,)}, "id": "1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"logprobs": None, "t": (1,)},
    ),
    "AIMessageChunk": AIMessageChunk("x") + AIMessageChunk("y"),
    "ToolMessage": ToolMessage("x", tool_call_id="1", artifact={1: ct.Frozen((2,))}),
    "RemoveMessage": RemoveMessage(id="1"),
    "Document": Document("p", metadata={"a": (1,)}),
    "content blocks": HumanMessage([{"type": "text", "text": "a"}, "b"]),
}

EVERY = [
    pytest.param(value, id=f"{group}: {name}")
    for group, values in (
        ("plain", PLAIN),
        ("standard", STANDARD),
        ("class", CLASSES),
        ("langchain", LANGCHAIN),
    )
    for name, value in values.items()
]


@pytest.mark.parametrize("value", EVERY)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    data = CODEC.encode(value)

    assert_same(expected(value), CODEC.decode(data))
    assert CODEC.encode(CODEC.decode(data)) == data


@pytest.mark.parametrize("value", EVERY)
def test_a_value_comes_back_from_within_others(value: Any) -> None:
    nested = {"a": [ct.Point(1, [(value, {3: value})])], "b": ct.MyList([value])}

    back = CODEC.decode(CODEC.encode(nested))

    assert_same(expected(value), back["a"][0].tags[0][0])
    assert_same(expected(value), back["a"][0].tags[0][1][3])
    assert_same(expected(value), back["b"][0])


def expected(value: Any) -> Any:
    """``value`` without what cached_property keeps, which is computed again."""
    if type(value) is ct.Cached:
        return ct.Cached(value.a)
    return value


def test_what_cached_property_keeps_is_computed_again() -> None:
    back = CODEC.decode(CODEC.encode([cached, computed]))

    assert vars(back[0]) == {"a": 1}
    assert "double" not in vars(back[1])
    assert back[1].double == 4


def test_the_type_argument_of_a_generic_instance_is_not_kept() -> None:
    assert_same(ct.Box(1), CODEC.decode(CODEC.encode(ct.Box[int](1))))


def test_equal_sets_give_equal_bytes() -> None:
    # A set of colliding numbers iterates in the order it was filled in.
    assert list({8, 0}) != list({0, 8})
    assert CODEC.encode({8, 0}) == CODEC.encode({0, 8})
    assert CODEC.encode(frozenset("abc")) == CODEC.encode(frozenset("cba"))


def test_a_decoded_container_is_a_new_one() -> None:
    value = {"a": []}
    data = CODEC.encode(value)
    CODEC.decode(data)["a"].append(1)
    assert CODEC.decode(data) == {"a": []}


def test_a_field_added_to_a_class_gets_its_default() -> None:
    point, slots = ct.Point.__new__(ct.Point), ct.FrozenSlots.__new__(ct.FrozenSlots)
    point.x = 1
    object.__setattr__(slots, "a", 1)
    dog = ct.Dog(name="d")
    del dog.__dict__["breed"]

    back = CODEC.decode(CODEC.encode([point, dog, slots]))

    assert back == [ct.Point(1), ct.Dog(name="d"), ct.FrozenSlots(1)]
    assert back[0].tags is not ct.Point(1).tags
