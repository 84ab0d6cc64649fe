"""Only classes that annotations, modules or lists name may be rebuilt."""

import argparse
import collections
import dataclasses
import enum
import pathlib
import sys
import textwrap
import typing
from typing import Annotated, Any, Literal, NewType, Optional, TypedDict

import codec_types as ct
import pydantic
import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from dapr_runners.state import AllowList, Codec, CorruptRecordError, UnstorableValueError

ANY = AllowList.of(modules=["codec_types"])
NOTHING = AllowList()


# -- what annotations allow


class State(TypedDict, total=False):
    plain: int
    required: typing.Required[Annotated[list[ct.Point], "reducer"]]
    either: "ct.Frozen | None"
    old_style: Optional[dict[str, "ct.Color"]]  # noqa: UP045
    tuples: tuple[ct.NT, ...]
    model: ct.Zoo


class Deep(typing.NamedTuple):
    outer: "ct.Box[ct.Typed]"
    literal: Literal[ct.Number.ONE]
    call: collections.abc.Callable[[ct.Attrs], ct.MyList]


Identifier = NewType("Identifier", ct.MyStr)


@dataclasses.dataclass
class Missing:
    unknown: "NoSuchName"  # type: ignore[name-defined]  # noqa: F821
    known: "ct.FrozenSlots"


def node(state: ct.Old, identifier: Identifier) -> "list[ct.MyDict]": ...


@pytest.mark.parametrize(
    ("root", "allowed"),
    [
        pytest.param(
            State, [ct.Point, ct.Frozen, ct.Color, ct.NT, ct.Zoo, ct.Animal], id="TypedDict"
        ),
        pytest.param(
            Deep, [Deep, ct.Box, ct.Typed, ct.Number, ct.Attrs, ct.MyList], id="NamedTuple"
        ),
        pytest.param(Missing, [Missing, ct.FrozenSlots], id="a name that does not exist"),
        pytest.param(node, [ct.Old, ct.MyStr, ct.MyDict], id="function"),
        pytest.param(ct.Page[ct.Point], [ct.Page[ct.Point], ct.Point], id="generic model"),
        pytest.param(list[ct.Outer.Inner] | None, [ct.Outer.Inner], id="type hint"),
        pytest.param(AnyMessage, [AIMessage, HumanMessage], id="union of messages"),
    ],
)
def test_the_classes_that_annotations_name_are_allowed(root: Any, allowed: list[type]) -> None:
    allow = AllowList.of(root)

    assert [cls for cls in allowed if not allow.allows(cls)] == []
    assert not allow.allows(ct.Private)
    assert not any(NOTHING.allows(cls) for cls in allowed)


def test_a_field_admits_subclasses_and_what_these_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kennel(ct.Animal):
        owner: ct.Frozen

    Kennel.__qualname__ = "Kennel"
    monkeypatch.setattr(sys.modules[__name__], "Kennel", Kennel, raising=False)
    allow = AllowList.of(ct.Zoo)

    assert allow.allows(ct.Dog)
    assert allow.allows(Kennel)
    assert allow.allows(ct.Frozen)
    assert not allow.allows(ct.Point)


def test_subclasses_of_classes_made_to_be_subclassed_are_not_admitted() -> None:
    class Loose(TypedDict):
        model: pydantic.BaseModel
        mapping: dict[str, Any]
        member: enum.Enum
        anything: object
        error: Exception
        root: pydantic.RootModel[list[int]]
        text: str

    allow = AllowList.of(Loose, ct.Rows)

    for cls in (ct.Zoo, ct.MyDict, ct.Color, ct.Plain, ct.Point):
        assert not allow.allows(cls)


def test_messages_admitted_by_their_base_come_back() -> None:
    codec = Codec(AllowList.of(list[BaseMessage]))
    assert codec.decode(codec.encode([AIMessage("x")])) == [AIMessage("x")]


# -- what modules and classes allow


def test_a_module_allows_its_data_classes_only() -> None:
    allow = AllowList.of(modules=["codec_types"])

    for cls in (ct.Point, ct.Zoo, ct.Old, ct.Color, ct.NT, ct.MyDict, ct.Attrs, ct.Needy):
        assert allow.allows(cls)
    for cls in (ct.Plain, ct.Slots, argparse.Namespace, pathlib.Path.__class__):
        assert not allow.allows(cls)


def test_a_package_allows_what_is_in_it_and_no_neighbour() -> None:
    assert AllowList.of(modules=["langchain_core.*"]).allows(AIMessage)
    assert not AllowList.of(modules=["langchain_core"]).allows(AIMessage)
    assert not AllowList.of(modules=["langchain.*"]).allows(AIMessage)
    assert AllowList.of(modules=["codec_types.*"]).allows(ct.Point)


def test_classes_given_are_allowed_whatever_they_are() -> None:
    allow = AllowList.of(extra=[argparse.Namespace])
    codec = Codec(allow)

    assert codec.decode(codec.encode(argparse.Namespace(a=1))) == argparse.Namespace(a=1)


def test_what_is_given_may_be_a_type_hint_but_not_a_name() -> None:
    assert AllowList.of(extra=[list[ct.Point] | None]).allows(ct.Point)
    with pytest.raises(TypeError, match=r"the string 'codec_types\.Point' is: import it"):
        AllowList.of(extra=["codec_types.Point"])


def test_lists_merge() -> None:
    merged = AllowList.of(ct.Zoo) | AllowList.of(extra=[ct.Plain], modules=["langchain_core.*"])

    for cls in (ct.Zoo, ct.Plain, AIMessage):
        assert merged.allows(cls)
    assert not merged.allows(ct.Point)


def test_a_local_class_is_allowed_if_it_is_named_itself() -> None:
    def make() -> type:
        @dataclasses.dataclass
        class Local:
            a: int

        return Local

    one, other = make(), make()
    codec = Codec(AllowList.of(list[one]))  # type: ignore[valid-type]

    back = codec.decode(codec.encode([one(1)]))

    assert type(back[0]) is one
    with pytest.raises(UnstorableValueError, match="its class is local to a function"):
        codec.encode([other(1)])
    both = AllowList.of(one) | AllowList.of(other)
    assert not both.allows(one)
    assert not both.allows(other)
    assert not AllowList.of(one, other).allows(one)


# -- what a record may not do


REBUILT = {
    "dataclass": ct.Point(1),
    "model": ct.Zoo(animal=ct.Dog(name="d")),
    "pydantic v1": ct.Old(x=1),
    "Enum": ct.Color.RED,
    "Flag": ct.Right.ALL,
    "namedtuple": ct.NT(1, 2),
    "dict subclass": ct.MyOrdered(a=1),
    "attrs": ct.Attrs(1),
    "class": ct.Point,
    "default factory": collections.defaultdict(ct.MyList),
    "in an exception": ValueError(ct.Point(1)),
}


@pytest.mark.parametrize("value", REBUILT.values(), ids=REBUILT.keys())
def test_a_class_that_is_not_allowed_is_not_rebuilt(value: object) -> None:
    data = Codec(ANY).encode({"a": [value]})

    with pytest.raises(CorruptRecordError) as caught:
        Codec(NOTHING).decode(data, "run/1/step/2")

    assert caught.value.key == "run/1/step/2"
    assert "which is not a class this runner may rebuild" in caught.value.reason
    assert "allow_types=[codec_types." in caught.value.reason


def test_a_module_that_is_not_imported_is_not_imported(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "ran"
    source = f"""
        import dataclasses, pathlib
        pathlib.Path({str(mark)!r}).touch()

        @dataclasses.dataclass
        class Thing:
            a: int

        class Trouble(Exception):
            pass
    """
    (tmp_path / "with_side_effects.py").write_text(textwrap.dedent(source))
    monkeypatch.syspath_prepend(tmp_path)
    import with_side_effects  # type: ignore[import-not-found]

    allow = AllowList.of(modules=["with_side_effects"])
    thing = Codec(allow).encode(with_side_effects.Thing(1))
    trouble = Codec(allow).encode(with_side_effects.Trouble("x"))
    cls = Codec(allow).encode(with_side_effects.Thing)
    monkeypatch.delitem(sys.modules, "with_side_effects")
    mark.unlink()

    for data in (thing, cls):
        with pytest.raises(CorruptRecordError, match="import its module before the runner starts"):
            Codec(allow).decode(data)
    assert type(Codec(allow).decode(trouble)).__name__ == "RemoteError"
    assert not mark.exists()
    assert "with_side_effects" not in sys.modules


def test_a_module_attribute_made_on_demand_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def __getattr__(name: str) -> object:
        asked.append(name)
        raise AttributeError(name)

    data = Codec(AllowList.of(extra=[ct.Frozen])).encode(ct.Frozen(1))
    monkeypatch.delattr(ct, "Frozen")
    monkeypatch.setattr(ct, "__getattr__", __getattr__, raising=False)

    with pytest.raises(CorruptRecordError):
        Codec(ANY).decode(data)
    assert "Frozen" not in asked


def test_no_code_of_a_class_runs() -> None:
    hostile = object.__new__(ct.Hostile)
    hostile.__dict__["a"] = hostile.__dict__["prop"] = 1
    codec = Codec(AllowList.of(extra=[ct.Hostile]))

    back = codec.decode(codec.encode(hostile))

    assert type(back) is ct.Hostile
    assert vars(back) == {"a": 1, "prop": 1}


def test_a_name_that_is_not_a_class_is_refused() -> None:
    codec = Codec(AllowList.of(modules=["codec_types", "os", "builtins", "sys"]))
    data = codec.encode(ct.Frozen)
    name = b"codec_types:Frozen"
    for other in (
        b"codec_types:with_at",
        b"sys:modules",
        b"os:system",
        b"builtins:eval",
        b":",
        b"",
    ):
        changed = recoded(data, name, other)
        with pytest.raises(CorruptRecordError):
            codec.decode(changed)


def recoded(data: bytes, old: bytes, new: bytes) -> bytes:
    """A record of a class under another name."""
    import zlib

    import ormsgpack

    tag = data[5:].index(old)
    code = data[5 + tag - 1]
    body = ormsgpack.packb(ormsgpack.Ext(code, new))
    return data[:1] + zlib.crc32(body).to_bytes(4, "big") + body
