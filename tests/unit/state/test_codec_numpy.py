"""numpy arrays, scalars and dtypes come back bit for bit, and arrays can be written to."""

from typing import Any

import codec_types as ct
import numpy as np
import pytest

from dapr_runners.state import AllowList, Codec, CorruptRecordError, UnstorableValueError

CODEC = Codec(AllowList.of(modules=["codec_types"]))

STRUCT = np.dtype(
    {
        "names": ["a", "b", "c"],
        "formats": ["<i4", ">f8", ("<u2", (2, 3))],
        "offsets": [0, 8, 20],
        "itemsize": 40,
        "titles": ["first", None, None],
    }
)
NESTED = np.dtype([("a", [("b", "U3"), ("c", "M8[25s]")]), ("d", "?")])

ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    **{
        code: np.arange(4).astype(code)
        for code in ("?", "b", "B", "<i2", ">i4", "q", "Q", "e", "f", "d", "g", "F", "D", "G")
    },
    "text": np.array(["a", "b\ud800", ""]),
    "bytes": np.array([b"a\x00b", b""]),
    "void": np.array([b"ab"], "V3"),
    "datetime64": np.array(["2020-01-01", "NaT"], "M8[D]"),
    "datetime64 25s": np.array([1, 2], "M8[25s]"),
    "timedelta64": np.array([1, -2], "m8[s]"),
    "2-d C": np.arange(6).reshape(2, 3),
    "2-d F": np.asfortranarray(np.arange(6).reshape(2, 3)),
    "3-d F": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "strided": np.arange(20).reshape(4, 5)[::2, ::-1],
    "read-only": np.broadcast_to(np.array([1]), (3, 2)),
    "0-d": np.array(5),
    "empty": np.zeros((0, 3), ">i2"),
    "no width": np.zeros(3, "V0"),
    "nan bits": np.array([0x7FF8_0000_0000_0001], "u8").view("d"),
    "records": np.zeros(2, STRUCT),
    "nested records": np.array([(("ab", "2020-01-01"), True)], NESTED),
    "aligned records": np.zeros(1, np.dtype([("a", "b"), ("b", "d")], align=True)),
    "strings": np.array(["a", "longer than fits in place" * 9], np.dtypes.StringDType()),
    "strings with NA": np.array(["a", np.nan], np.dtypes.StringDType(na_object=np.nan)),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS.keys())
def test_an_array_comes_back(array: np.ndarray[Any, Any]) -> None:
    back = CODEC.decode(CODEC.encode({"a": (array,)}))["a"][0]

    assert type(back) is np.ndarray
    assert back.dtype == array.dtype
    assert back.dtype.isalignedstruct == array.dtype.isalignedstruct
    assert back.shape == array.shape
    assert back.flags.fnc == array.flags.fnc
    assert back.flags.writeable
    assert back.flags.aligned
    if array.dtype.kind == "T":
        assert repr(back) == repr(array)
    else:
        assert back.tobytes("A") == array.tobytes("A")
    if back.size:
        back[...] = array


def test_an_array_of_objects_goes_through_the_codec() -> None:
    cells = [ct.Point(1), (1,), [1, 2], None, np.array([1, 2]), np.float32(1)]
    array = np.empty((2, 3), object, order="F")
    for index, cell in enumerate(cells):
        array[index % 2, index // 2] = cell

    back = CODEC.decode(CODEC.encode(array))

    assert back.dtype == object
    assert back.flags.fnc
    for place in np.ndindex(2, 3):
        assert type(back[place]) is type(array[place])
        assert np.array_equal(back[place], array[place])


SCALARS = [
    *(np.ones(1, code)[0] for code in "?bBhHiIlLqQefdgFDG"),
    np.float64("nan"),
    np.float64(-0.0),
    np.datetime64("2020-01-01T00", "h"),
    np.datetime64("NaT", "s"),
    np.timedelta64(5, "us"),
    np.str_("a\x00"),
    np.str_(""),
    np.bytes_(b"a\x00"),
    np.void(b"abc"),
    np.zeros(1, STRUCT)[0],
    np.dtype(">i2").type(3),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_a_scalar_comes_back(scalar: Any) -> None:
    back = CODEC.decode(CODEC.encode([scalar, {scalar.item() if 0 else 1: scalar}]))

    for found in (back[0], back[1][1]):
        assert type(found) is type(scalar)
        assert found.dtype == scalar.dtype
        assert found.tobytes() == scalar.tobytes()


def test_a_scalar_can_be_a_key() -> None:
    assert CODEC.decode(CODEC.encode({np.int64(1): 2})) == {np.int64(1): 2}
    assert type(next(iter(CODEC.decode(CODEC.encode({np.int64(1): 2}))))) is np.int64


@pytest.mark.parametrize("dtype", [np.dtype(">i4"), STRUCT, NESTED, np.dtype("O"), np.dtype("U0")])
def test_a_dtype_comes_back(dtype: np.dtype[Any]) -> None:
    back = CODEC.decode(CODEC.encode(dtype))
    assert back == dtype
    assert type(back) is type(dtype)


def test_records_of_a_class_of_their_own_are_refused() -> None:
    with pytest.raises(UnstorableValueError, match="numpy does not know this dtype by its code"):
        CODEC.encode(np.zeros(1, np.dtype((np.record, [("a", "i4")]))))
    with pytest.raises(UnstorableValueError, match="it is a subclass of numpy"):
        CODEC.encode(np.zeros(1, [("a", "i4")]).view(np.recarray))


def test_an_array_without_its_bytes_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    from dapr_runners.state import _numpy

    def lie(parts: Any) -> Any:
        return lambda dtype: parts

    for parts, why in (("O", "it is not"), ("<i8", "buffer is too small"), ("<i2", "more bytes")):
        monkeypatch.setattr(_numpy, "_dtype_parts", lie(parts))
        data = CODEC.encode(np.zeros(3, "<i4"))
        monkeypatch.undo()
        with pytest.raises(CorruptRecordError) as caught:
            CODEC.decode(data)
        assert why in caught.value.reason or "is expected where" in caught.value.reason
