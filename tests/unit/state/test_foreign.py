"""What is read of records, and shown, where the program and its classes are not known."""

import datetime as dt
import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel

from dapr_runners.state import (
    AllowList,
    Codec,
    Extension,
    Foreign,
    ReadingCodec,
    as_json,
    as_size,
)


@dataclass
class Plain:
    number: int
    inner: Any = None


@dataclass(slots=True)
class Slotted:
    text: str


class Model(BaseModel):
    field: int


class Colour(Enum):
    RED = 1


class Many(list[int]):
    pass


class Odd(Exception):
    pass


class Ours:
    def __init__(self, text: str) -> None:
        self.text = text


def _read(value: Any) -> Any:
    ours: Extension[Any] = Extension(Ours, "ours", lambda value: [value.text], lambda _: Ours(""))
    allow = AllowList.of(extra=[Plain, Slotted, Model, Colour, Many])
    return ReadingCodec().decode(Codec(allow, extensions=[ours]).encode(value))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Plain(1, [Slotted("x")]), {"number": 1, "inner": [{"type": "Slotted", "text": "x"}]}),
        (Model(field=2), {"field": 2}),
        (Colour.RED, {"value": "RED"}),
        (Many([1, 2]), {"value": [1, 2]}),
        (Ours("x"), {"value": ["x"]}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_object_is_shown_as_it_is_stored(value: Any, shown: dict[str, Any]) -> None:
    read = _read(value)
    assert isinstance(read, Foreign)
    told = json.loads(json.dumps(as_json(read)).replace(f"{__name__}.", ""))
    name = "ours" if isinstance(value, Ours) else type(value).__name__
    assert told == {"type": name, **shown}


def test_entries_of_what_is_stored_are_attributes() -> None:
    assert _read(Plain(7)).number == 7
    with pytest.raises(AttributeError, match="nothing"):
        _ = _read(Plain(7)).nothing


def test_an_error_has_its_own_name() -> None:
    known = as_json(_read(ValueError("x")))
    assert (known["error_type"], known["message"]) == ("ValueError", "x")
    # Of a class that this process has imported, which the one that reads has not.
    data = Codec(AllowList()).encode(Odd("x")).replace(b"Odd", b"Old")
    body = data[5:]
    import zlib

    read = ReadingCodec().decode(data[:1] + zlib.crc32(body).to_bytes(4, "big") + body)
    assert as_json(read)["error_type"] == f"{__name__}.Old"


def test_plain_values_stay_what_json_has() -> None:
    when = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    value = {"a": [1, None, 0.5, True, "é"], "t": (1, {2}), 3: when, "n": float("nan")}
    assert as_json(value) == {
        "a": [1, None, 0.5, True, "é"],
        "t": [1, [2]],
        "3": str(when),
        "n": "nan",
    }
    assert as_json(b"\x00\x01") == {"type": "bytes", "base64": "AAE="}


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("secret", {"type": "str", "size": 8}),
        ({"secret": 1}, {"type": "dict", "size": 13}),
        (17, {"type": "int", "size": 2}),
    ],
)
def test_a_size_tells_nothing_of_the_value(value: Any, size: dict[str, Any]) -> None:
    assert as_size(value) == size


def test_an_error_without_its_text_keeps_its_name() -> None:
    told = as_size(ValueError("secret"))
    assert told["error_type"] == "ValueError"
    assert "secret" not in json.dumps(told)
