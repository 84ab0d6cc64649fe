"""What cannot be stored is refused at once, with where it is, why, and what to do."""

import collections
import functools
import io
import operator
import os
import re
import sys
import threading
from typing import Any

import codec_types as ct
import numpy as np
import pandas as pd
import pydantic
import pytest

from dapr_runners.state import AllowList, Codec, Extension, UnstorableValueError

CODEC = Codec(AllowList.of(modules=["codec_types"], extra=[ct.Plain]))


def refused(value: object, codec: Codec = CODEC, where: str = "state") -> UnstorableValueError:
    with pytest.raises(UnstorableValueError) as caught:
        codec.encode(value, where)
    return caught.value


def local_class() -> type:
    class Local(pydantic.BaseModel):
        a: int

    return Local


CASES: dict[str, tuple[Any, str, str]] = {
    "lambda": (lambda: 1, "it is code", "look the function up where it is used"),
    "built-in function": (operator.add, "it is code", "look the function up"),
    "bound method": (ct.Plain(1).__eq__, "it is code", "look the function up"),
    "partial": (functools.partial(print), "it is code", "look the function up"),
    "generator": ((i for i in ()), "it is a running computation", "list(value)"),
    "iterator": (iter([1]), "it is a running computation", "list(value)"),
    "map": (map(str, [1]), "it is a running computation", "list(value)"),
    "dict view": ({}.keys(), "it is a view of a dict", "list(view)"),
    "memoryview": (memoryview(b"x"), "a view of memory that something else owns", "bytes(view)"),
    "module": (os, "it is a module", "import it where it is used"),
    "lock": (threading.Lock(), "it belongs to this process", "Keep it outside the state"),
    "thread": (threading.current_thread(), "it belongs to this process", "Keep it outside"),
    "event": (threading.Event(), "it belongs to this process", "Keep it outside the state"),
    "file": (io.StringIO(), "it belongs to this process", "open or make it where it is used"),
    "marker": (object(), "it is only equal to itself", "Use None, an Enum member"),
    "DEBUG pattern": (re.compile("", re.DEBUG), "would print", "without re.DEBUG"),
    "local class": (
        local_class()(a=1),
        "its class is local to a function",
        "Move Local to module level, then pass allow_types=[test_codec_refusals.Local] to the",
    ),
    "class not allowed": (
        argparse_namespace := __import__("argparse").Namespace(a=1),
        "its class is not one this runner may rebuild",
        "Pass allow_types=[argparse.Namespace] to the runner.",
    ),
    "class object": (
        type(argparse_namespace),
        "it is a class, and records only name classes that are allowed",
        "Pass allow_types=[argparse.Namespace] to the runner.",
    ),
    "default factory": (
        collections.defaultdict(lambda: 1),
        "it is code",
        "look the function up where it is used",
    ),
    "C type": (
        np.random.default_rng(1),
        "it is implemented in C",
        "or give the codec an Extension for its type",
    ),
    "array of records of objects": (
        np.zeros(1, [("a", "O")]),
        "its records hold Python objects",
        "array.tolist()",
    ),
    "array subclass": (np.ma.array([1]), "it is a subclass of numpy.ndarray", "numpy.asarray"),
    "DataFrame": (
        pd.DataFrame(),
        "the codec was made without pandas",
        "Pass extensions=pandas_extensions() to the codec",
    ),
}


@pytest.mark.parametrize(("value", "reason", "remedy"), CASES.values(), ids=CASES.keys())
def test_a_value_that_cannot_come_back_is_refused(value: Any, reason: str, remedy: str) -> None:
    error = refused(value)

    assert reason in error.reason
    assert remedy in error.remedy
    assert error.reason in str(error)
    assert error.remedy in str(error)


def test_the_message_says_where_what_why_and_how() -> None:
    error = refused({"items": [1, 2, 3, ct.Box(ct.Point(1, [threading.Lock()]))]})

    assert str(error) == (
        "state['items'][3].item.tags[0] is a _thread.lock, which cannot be stored: it belongs to"
        " this process. A value that could not be read back with its exact type is refused before"
        " anything is written, so this step is not recorded. Keep it outside the state, and open"
        " or make it where it is used."
    )


LOCK = threading.Lock()
PLACES: dict[str, tuple[Any, str]] = {
    "the value itself": (LOCK, "state"),
    "list": ([[0, LOCK]], "state[0][1]"),
    "tuple": ((0, LOCK), "state[1]"),
    "dict": ({"a": {"b": LOCK}}, "state['a']['b']"),
    "int key": ({1: LOCK}, "state[1]"),
    "key": ({0: 0, (1, ct.Frozen(LOCK)): 1}, "state.keys()[1][1].a"),
    "set": ({ct.Frozen(LOCK)}, "state{Frozen}.a"),
    "deque": (collections.deque([LOCK]), "state[0]"),
    "namedtuple": (ct.NT(1, [LOCK]), "state.b[0]"),
    "dict subclass": (ct.MyOrdered(a=LOCK), "state['a']"),
    "dataclass": (ct.Point(1, [LOCK]), "state.tags[0]"),
    "slots": (ct.FrozenSlots(1, {"x": LOCK}), "state.b['x']"),
    "model": (ct.Extra(b={"c": LOCK}), "state.b['c']"),
    "private attribute": (ct.Private(a=1), "state._hidden"),
    "plain class": (ct.Plain({"a": (LOCK,)}), "state.a['a'][0]"),
    "object array": (np.array([[None, LOCK]], object), "state[0, 1]"),
    "namespace": (__import__("types").SimpleNamespace(a=LOCK), "state.a"),
}
PLACES["private attribute"][0]._hidden = LOCK


@pytest.mark.parametrize(("value", "path"), PLACES.values(), ids=PLACES.keys())
def test_the_path_leads_to_the_culprit(value: Any, path: str) -> None:
    assert refused(value).where.endswith(path)
    assert refused([value]).where.endswith(path.removeprefix("state"))
    assert refused([value]).where.startswith("state[0]")


def test_a_value_that_contains_itself_is_refused() -> None:
    lists: list[Any] = [1]
    lists.append({"again": lists})
    chain = ct.Chain()
    chain.next = ct.Chain((chain,))

    for value, where in ((lists, "state[1]['again']"), (chain, "state.next.next[0]")):
        error = refused(value)
        assert error.where == where
        assert error.reason.startswith("it contains itself")
    assert "it contains itself" in refused({1: lists}).reason
    assert "it contains itself" in refused([ct.Chain(lists)]).reason


def test_a_value_nested_too_deep_is_refused_and_one_not_quite_so_deep_comes_back() -> None:
    def nested(wrap: Any, levels: int) -> Any:
        value = None
        for _ in range(levels):
            value = wrap(value)
        return value

    for wrap, most in ((ct.Chain, 100), (lambda v: (v,), 100), (lambda v: [v], 255)):
        fits = nested(wrap, most)
        assert CODEC.encode(CODEC.decode(CODEC.encode(fits))) == CODEC.encode(fits)
        assert "nests more than 100 objects or 255 lists" in refused(nested(wrap, most + 1)).reason
        assert "nests more than 100 objects or 255 lists" in refused(nested(wrap, 5000)).reason


def test_a_culprit_among_many_shared_parts_is_found_in_time() -> None:
    shared: Any = [1]
    for _ in range(60):
        shared = [shared, shared]
    deep: Any = ct.Frozen(1)
    for _ in range(150):
        deep = ct.FrozenSlots(deep, deep)

    assert refused([LOCK, shared]).where == "state[0]"
    assert refused(deep).where == "state"


def test_a_class_that_took_the_name_of_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    value = ct.Point(1)
    monkeypatch.setattr(ct, "Point", ct.Frozen)

    error = refused(value, Codec(CODEC.allow))

    assert error.reason == "another process would not find its class under its name"
    assert "as Point in the module codec_types" in error.remedy


def test_an_error_of_an_encoder_is_told() -> None:
    never_initialised = ct.Animal.__new__(ct.Animal)

    error = refused([1, never_initialised])

    assert error.where == "state[1]"
    assert error.reason.startswith("encoding it failed with AttributeError: ")


def test_a_failure_leaves_nothing_behind() -> None:
    for _ in range(2):
        refused([LOCK])
        assert CODEC.decode(CODEC.encode([(1,)])) == [(1,)]


def test_an_interrupt_while_encoding_is_not_swallowed() -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    codec = Codec(AllowList(), extensions=[Extension(ct.Plain, "plain", interrupt, interrupt)])
    with pytest.raises(KeyboardInterrupt):
        codec.encode([(ct.Plain(1),)])


def test_the_stack_may_be_almost_full() -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            CODEC.encode([((((((((1,),),),),),),),)])

    free = sys.getrecursionlimit() - len(__import__("inspect").stack())
    with pytest.raises((UnstorableValueError, RecursionError)):
        deep(free - 12)
