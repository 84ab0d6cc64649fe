"""Any plain data comes back exactly, and equal data gives equal bytes."""

import datetime as dt
from collections import OrderedDict, deque
from typing import Any

import codec_types as ct
from hypothesis import given, settings
from hypothesis import strategies as st
from same import assert_same, same

from dapr_runners.state import AllowList, Codec

CODEC = Codec(AllowList.of(modules=["codec_types"]))

text = st.text(st.characters(codec=None, categories=None))  # lone surrogates too
zones = st.none() | st.timezones() | st.just(dt.UTC)
hashable: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.complex_numbers()
    | text
    | st.binary()
    | st.decimals().filter(lambda number: not number.is_snan())  # it has no hash
    | st.fractions()
    | st.uuids()
    | st.datetimes(timezones=zones, allow_imaginary=True)
    | st.dates()
    | st.times(timezones=st.none() | st.just(dt.UTC))
    | st.timedeltas()
    | st.ip_addresses()
    | st.sampled_from([*ct.Color, *ct.Right, ct.Right(0), ct.Bits(3), ..., int, ct.Point])
    | st.builds(ct.MyStr, text)
    | st.builds(ct.MyInt, st.integers()),
    lambda inner: (
        st.tuples(inner, inner)
        | st.frozensets(inner, max_size=4)
        | st.builds(ct.Frozen, inner)
        | st.builds(ct.NT, inner, inner)
    ),
    max_leaves=5,
)
values: st.SearchStrategy[Any] = st.recursive(
    hashable | st.binary().map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(text, inner, max_size=5)
        | st.dictionaries(hashable, inner, max_size=5)
        | st.sets(hashable, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.builds(deque, st.lists(inner, max_size=3), st.none() | st.integers(0, 5))
        | st.dictionaries(hashable, inner, max_size=3).map(OrderedDict)
        | st.dictionaries(hashable, inner, max_size=3).map(ct.MyCounter)
        | st.builds(ct.Point, inner, st.lists(inner, max_size=3))
        | st.builds(ct.Extra, b=inner)
        | st.lists(inner, max_size=3).map(ct.MyList)
    ),
    max_leaves=20,
)


@settings(max_examples=300)
@given(values)
def test_a_value_comes_back(value: Any) -> None:
    data = CODEC.encode(value)
    back = CODEC.decode(data)

    assert_same(value, back)
    assert CODEC.encode(back) == data


@given(values, values)
def test_values_that_differ_have_other_bytes(one: Any, other: Any) -> None:
    if not same(one, other):
        assert CODEC.encode(one) != CODEC.encode(other)


@given(st.lists(hashable, max_size=8), st.randoms())
def test_a_set_has_the_same_bytes_whatever_the_order(members: list[Any], random: Any) -> None:
    # Equal members of different types (0 and False) take each other's place in a set.
    distinct = {CODEC.encode(member): member for member in set(members)}
    shuffled = list(distinct.values())
    random.shuffle(shuffled)

    assert CODEC.encode(set(distinct.values())) == CODEC.encode(set(shuffled))
