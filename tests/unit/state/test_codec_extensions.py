"""A codec can be told how to store further types."""

import threading
from typing import Any

import codec_types as ct
import pytest

from dapr_runners.state import (
    AllowList,
    Codec,
    CorruptRecordError,
    Extension,
    UnstorableValueError,
)


class Money:
    """Neither allowed nor a data class."""

    def __init__(self, amount: Any) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.amount == self.amount

    def __hash__(self) -> int:
        return hash(self.amount)


class Euros(Money):
    pass


MONEY = Extension(Money, "money", lambda money: money.amount, Money)


def codec(*extensions: Extension[Any]) -> Codec:
    return Codec(AllowList.of(modules=["codec_types"]), extensions=extensions)


def test_a_value_goes_through_its_extension_wherever_it_is() -> None:
    both = codec(MONEY)
    value = {"a": [(Money((1, ct.Frozen(2))),)], Money("key"): ct.Point(1, [Money({1: 2})])}

    assert both.decode(both.encode(value)) == value


def test_a_subclass_needs_an_extension_that_takes_subclasses() -> None:
    with pytest.raises(UnstorableValueError, match=r"allow_types=\[test_codec_extensions.Euros\]"):
        codec(MONEY).encode(Euros(1))

    both = codec(
        Extension(
            Money,
            "any money",
            lambda money: [type(money).__name__, money.amount],
            lambda parts: {"Money": Money, "Euros": Euros}[parts[0]](parts[1]),
            subclasses=True,
        )
    )
    assert both.decode(both.encode([Euros(1), Money(2)])) == [Euros(1), Money(2)]


def test_an_extension_goes_before_what_the_codec_does_itself() -> None:
    both = codec(
        Extension(ct.Frozen, "frozen", lambda frozen: frozen.a, ct.Frozen),
        Extension(
            ValueError, "value error", lambda error: list(error.args), lambda a: ValueError(*a)
        ),
        Extension(tuple, "tuple", list, tuple),
    )
    data = both.encode([ct.Frozen(1), ValueError("a"), (1,)])

    assert b"codec_types" not in data
    assert both.decode(data)[0] == ct.Frozen(1)
    assert both.decode(data)[1].args == ("a",)
    assert both.decode(data)[2] == (1,)


def test_a_part_of_it_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(UnstorableValueError) as caught:
        codec(MONEY).encode({"price": Money(threading.Lock())}, "state")
    assert caught.value.where == "state['price'].amount"


def test_an_error_in_it_is_told() -> None:
    broken = Extension(Money, "money", lambda money: 1 // 0, Money)
    with pytest.raises(UnstorableValueError) as caught:
        codec(broken).encode([Money(1)], "state")
    assert caught.value.where == "state[0]"
    assert caught.value.reason.startswith("encoding it failed with ZeroDivisionError")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)

    broken = Extension(Money, "money", lambda money: 1, lambda amount: 1 // 0)
    with pytest.raises(CorruptRecordError, match="ZeroDivisionError"):
        codec(broken).decode(codec(broken).encode(Money(1)))


def test_a_record_needs_the_extension_it_was_written_with() -> None:
    data = codec(MONEY).encode(Money(1))
    with pytest.raises(CorruptRecordError, match="the extension 'money', which is not in use here"):
        codec().decode(data)


def test_it_must_give_back_the_type_it_stands_for() -> None:
    for wrong in (lambda amount: amount, Euros):
        broken = codec(Extension(Money, "money", lambda money: money.amount, wrong))
        with pytest.raises(CorruptRecordError, match="the extension 'money' gave a"):
            broken.decode(broken.encode(Money(1)))


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="Two extensions have the same name"):
        codec(MONEY, Extension(Euros, "money", vars, Euros))


def test_one_for_what_is_packed_natively_is_refused() -> None:
    for native in (int, str, dict, list, bytes, float, bool, type(None)):
        with pytest.raises(ValueError, match="the extension 'x' would not be asked"):
            Extension(native, "x", repr, eval)
