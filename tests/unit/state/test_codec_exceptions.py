"""Exceptions come back as what they were, or as near as can be: they never fail to be recorded."""

import asyncio
import json
import pathlib
import threading
import traceback
from typing import Any

import codec_types as ct
import pydantic
import pytest
from same import assert_same

from dapr_runners.state import (
    AllowList,
    Codec,
    CorruptRecordError,
    RemoteError,
    UnstorableValueError,
    describe_traceback,
)

CODEC = Codec(AllowList.of(modules=["codec_types"]))


def through(error: BaseException) -> Any:
    return CODEC.decode(CODEC.encode({"error": error}))["error"]


def raised(make: Any) -> BaseException:
    try:
        make()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def with_notes(error: BaseException) -> BaseException:
    error.add_note("note")
    return error


PLAIN = {
    "ValueError": ValueError("a", (1, 2)),
    "no args": KeyError(),
    "BaseException": KeyboardInterrupt(),
    "CancelledError": asyncio.CancelledError("why"),
    "notes": with_notes(RuntimeError("a")),
    "keyword-only constructor": ct.Needy(code=(1,), message="m"),
    "OSError": FileNotFoundError(2, "No such file", "a", None, "b"),
    "OSError subclass": ct.MyOSError(5, "x"),
    "SystemExit": SystemExit(3),
    "StopIteration": StopIteration((1,)),
    "ImportError": ImportError("m", name="n", path="p"),
    "UnicodeDecodeError": raised(lambda: b"\xff".decode()),
    "UnicodeEncodeError": raised(lambda: "\udfff".encode()),
    "SyntaxError": SyntaxError("m", ("f.py", 1, 2, "text", 1, 3)),
    "NameError": NameError("m", name="n"),
    "AttributeError": AttributeError("m", name="n", obj=ct.Frozen(1)),
    "JSONDecodeError": raised(lambda: json.loads("{")),
    "slots": ct.SlotError("a"),
    "own error": UnstorableValueError("w", "t", "r", "m"),
    "own error with a key": CorruptRecordError("k", "r"),
    "holds an exception": ValueError(KeyError("a")),
}
PLAIN["slots"].detail = (1,)  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", PLAIN.values(), ids=PLAIN.keys())
def test_an_exception_comes_back_as_it_was(error: BaseException) -> None:
    error = error.with_traceback(None)

    back = through(error)

    assert_same(error, back)
    assert str(back) == str(error)
    assert repr(back) == repr(error)
    for name in ("errno", "filename", "filename2", "value", "code", "name", "path", "msg", "obj"):
        assert_same(getattr(error, name, None), getattr(back, name, None))
    for name in ("lineno", "offset", "text", "start", "end", "object", "reason", "encoding"):
        assert_same(getattr(error, name, None), getattr(back, name, None))


def test_groups_come_back() -> None:
    inner = ExceptionGroup("in", [OSError(1, "x"), ct.Needy(code=1, message="m")])
    for group in (
        ExceptionGroup("out", [ValueError("a"), inner]),
        ct.MyGroup("mine", [ValueError("a")]),
        BaseExceptionGroup("base", [KeyboardInterrupt()]),
    ):
        back = through(group)
        assert type(back) is type(group)
        assert back.message == group.message
        assert back.args == (group.message, back.args[1])
        assert str(back) == str(group)
        for one, other in zip(group.exceptions, back.exceptions, strict=True):
            assert repr(one) == repr(other)
            assert type(one) is type(other)
    caught = through(ExceptionGroup("out", [inner])).subgroup(ct.Needy)
    assert caught.exceptions[0].exceptions[0].code == 1


def test_groups_within_groups_are_stored_once() -> None:
    group = ExceptionGroup("0", [ValueError("a")])
    for level in range(1, 30):
        group = ExceptionGroup(str(level), (group,))

    data = CODEC.encode(group)

    assert len(data) < 10_000
    assert CODEC.encode(CODEC.decode(data)) == data


def test_what_an_exception_came_from_comes_with_it() -> None:
    def fail() -> None:
        try:
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("second") from error
        except ValueError:
            raise RuntimeError("third")  # noqa: B904

    back = through(raised(fail))

    assert repr(back.__context__) == "ValueError('second')"
    assert back.__cause__ is None
    assert not back.__suppress_context__
    assert repr(back.__context__.__cause__) == "KeyError('first')"
    assert back.__context__.__context__ is back.__context__.__cause__
    assert back.__context__.__suppress_context__


def test_a_cycle_of_causes_keeps_its_shape() -> None:
    one, two = ValueError("one"), KeyError("two")
    one.__cause__, two.__cause__ = two, one

    back = through(one)

    assert back.__cause__.__cause__ is back


def test_a_long_chain_is_cut() -> None:
    error: BaseException | None = None
    for number in range(500):
        error, cause = ValueError(number), error
        error.__cause__ = cause
    assert error is not None

    back: BaseException | None = through(error)

    numbers = []
    while back is not None:
        numbers.append(back.args[0])
        back = back.__cause__
    assert numbers == list(range(499, 483, -1))


def test_what_cannot_be_stored_becomes_a_marked_text() -> None:
    error = ValueError("kept", threading.Lock(), [1, lambda: 1])
    error.client = threading.Lock()  # type: ignore[attr-defined]
    error.kept = (1,)  # type: ignore[attr-defined]
    error.itself = error.again = error  # type: ignore[attr-defined]

    back = through(error)

    assert back.args[0] == "kept"
    assert back.args[1].startswith("<not stored: <unlocked _thread.lock object at")
    assert back.args[2].startswith("<not stored: [1, <function")
    assert back.client.startswith("<not stored: <unlocked _thread.lock")
    assert back.kept == (1,)
    assert back.itself.startswith("<not stored: ValueError('kept', <unlocked")


def test_a_part_that_cannot_be_stored_does_not_harm_what_comes_after() -> None:
    error = ValueError(ct.Point(1, [threading.Lock()]), {1: 2})

    assert through(error).args[1] == {1: 2}
    with pytest.raises(UnstorableValueError) as caught:
        CODEC.encode([error, {"a": ct.Frozen(threading.Lock())}], "state")
    assert caught.value.where == "state[1]['a'].a"


def test_a_member_that_cannot_be_stored_is_left_out() -> None:
    back = through(AttributeError("m", name="n", obj=threading.Lock()))

    assert (back.name, back.obj) == ("n", None)


def test_after_a_failed_argument_the_rest_is_stored_as_deep_as_before() -> None:
    value: Any = 1
    for _ in range(90):
        value = (value,)
    errors = [ValueError(ct.Chain(ct.Chain(threading.Lock()))) for _ in range(300)]

    assert CODEC.decode(CODEC.encode([errors, value]))[1] == value


def test_an_error_whose_text_needs_what_could_not_be_stored_stays_printable() -> None:
    client = ct.Plain(1)  # not allowed here
    client.name = "service"

    back = through(ct.Shown(client))

    assert type(back) is RemoteError
    assert back.type_name == "codec_types.Shown"
    assert back.detail == "service"


def test_a_class_that_is_not_imported_comes_back_as_a_remote_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Local(ValueError):
        pass

    error = with_notes(raised(lambda: (_ for _ in ()).throw(Local("a", 1))))
    error.__cause__ = KeyError("why")

    back = through(error)

    assert type(back) is RemoteError
    assert back.type_name.endswith("<locals>.Local")
    assert back.detail == "('a', 1)"
    assert "Local: ('a', 1) (The error was raised in another process" in str(back)
    assert back.__notes__ == ["note"]
    assert repr(back.__cause__) == "KeyError('why')"
    assert "throw(Local" in describe_traceback(back)
    assert_same(back, through(back))


def test_a_validation_error_comes_back() -> None:
    class Model(pydantic.BaseModel):
        a: int
        b: list[str]
        c: int = 1

        @pydantic.field_validator("c")
        @classmethod
        def odd(cls, c: int) -> int:
            if c == 3:
                from pydantic_core import PydanticCustomError

                raise PydanticCustomError("own_kind", "own {text}", {"text": "words"})
            raise ValueError("even")

    for c in (2, 3):
        error: Any = raised(lambda c=c: Model(a="x", b=[1, threading.Lock()], c=c))
        back = through(error)

        assert type(back) is pydantic.ValidationError
        assert back.title == error.title
        assert [line["loc"] for line in back.errors()] == [line["loc"] for line in error.errors()]
        assert [line["msg"] for line in back.errors()] == [line["msg"] for line in error.errors()]
        assert [line["type"] for line in back.errors()] == [line["type"] for line in error.errors()]


def test_where_it_was_raised_is_kept_as_text() -> None:
    error = raised(lambda: json.loads("{"))

    back = through(error)

    assert back.__traceback__ is None
    assert describe_traceback(back) == describe_traceback(error)
    assert 'json/decoder.py", line' in describe_traceback(back)
    assert describe_traceback(ValueError()) == ""


def test_where_it_was_raised_again_is_added() -> None:
    def reraise() -> None:
        raise through(raised(lambda: json.loads("{")))

    twice = through(raised(reraise))

    text = describe_traceback(twice)
    assert text.index("in reraise") < text.index("json/decoder.py")


def test_a_traceback_is_bounded() -> None:
    def deep(levels: int) -> None:
        if levels == 0:
            raise ValueError
        try:
            deep(levels - 1)
        finally:
            pass

    assert len(describe_traceback(through(raised(lambda: deep(400))))) <= 16_384


def test_a_raised_exception_prints_as_before() -> None:
    back = through(raised(lambda: pathlib.Path("/nowhere").read_text()))

    printed = "".join(traceback.format_exception(back))

    assert printed.endswith("FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'\n")
