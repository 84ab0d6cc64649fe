"""pandas values come back with their exact dtypes, if the codec was told about them."""

import builtins
import zoneinfo
from typing import Any

import codec_types as ct
import numpy as np
import pandas as pd
import pytest
from langchain_core.messages import ToolMessage

from dapr_runners.state import AllowList, Codec, UnstorableValueError, pandas_extensions

CODEC = Codec(
    AllowList.of(modules=["codec_types", "langchain_core.*"]), extensions=pandas_extensions()
)
PARIS = zoneinfo.ZoneInfo("Europe/Paris")


def through(value: Any) -> Any:
    return CODEC.decode(CODEC.encode({"a": (value,)}))["a"][0]


COLUMNS: dict[str, Any] = {
    "int": np.array([1, 2, 3]),
    "float": [1.5, np.nan, -0.0],
    "float32": np.array([1, 2, 3], "f4"),
    "bool": [True, False, True],
    "str": ["a", None, "\U0001f600"],
    "objects": pd.Series([(1,), ct.Frozen(1), None], dtype=object),
    "category": pd.Categorical(["a", None, "a"], categories=["b", "a"], ordered=True),
    "category of moments": pd.Categorical(pd.to_datetime(["2020", "2021", None])),
    "moments": pd.DatetimeIndex(["2020-01-01T00:00:00.000", None, "2021-02-03T04:05:06.789"]),
    "moments in zone": pd.to_datetime(["2020-10-25 00:30", "2020-10-25 01:30", None])
    .tz_localize("UTC")
    .tz_convert(PARIS),
    "seconds in zone": pd.DatetimeIndex(["2020", "2021", "2022"], tz=PARIS).as_unit("s"),
    "durations": pd.to_timedelta(["1s", None, "-2D"]),
    "periods": pd.PeriodIndex(["2020Q1", None, "2021Q3"], freq="Q"),
    "intervals": pd.interval_range(0, 3, closed="left"),
    "Int64": pd.array([1, None, 3], "Int64"),
    "UInt8": pd.array([1, None, 3], "UInt8"),
    "Float32": pd.array([1.5, None, 3], "Float32"),
    "boolean": pd.array([True, None, False], "boolean"),
    "string": pd.array(["a", None, "b"], pd.StringDtype("python")),
    "complex": [1j, 2, 3],
}
INDEXES = {
    "range": pd.RangeIndex(1, 7, 2, name="r"),
    "int": pd.Index([3, 1, 1], name=("a", 1)),
    "str": pd.Index(["a", "b", "c"]),
    "objects": pd.Index([1, "a", (2,)], dtype=object),
    "dates": pd.date_range("2020", periods=3, freq="MS"),
    "dates in zone": pd.date_range("2020", periods=3, freq="h", tz=PARIS),
    "durations": pd.timedelta_range("1D", periods=3),
    "periods": pd.period_range("2020", periods=3, freq="M"),
    "intervals": pd.interval_range(0.5, 3.5),
    "categories": pd.CategoricalIndex(["a", "b", "a"]),
    "levels": pd.MultiIndex.from_product([["a"], [1, 2, 3]], names=["x", None]),
    "masked": pd.Index(pd.array([1, None, 2], "Int64")),
    "empty": pd.Index([], dtype="f8"),
}


@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
def test_a_series_comes_back(values: Any) -> None:
    series = pd.Series(values, name=("n", 1), index=[1, "b", (2,)])
    series.attrs["a"] = (1,)

    back = through(series)

    pd.testing.assert_series_equal(back, series, check_exact=True, check_freq=True)
    assert back.dtype == series.dtype
    assert back.attrs == {"a": (1,)}
    assert back.name == ("n", 1)
    assert CODEC.encode(back) == CODEC.encode(series)


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES.keys())
def test_an_index_comes_back(index: Any) -> None:
    back = through(index)

    pd.testing.assert_index_equal(back, index, exact=True, check_exact=True)
    assert type(back) is type(index)
    assert back.dtype == index.dtype
    assert back.names == index.names
    assert getattr(back, "freq", None) == getattr(index, "freq", None)


def test_a_frame_comes_back() -> None:
    frame = pd.DataFrame(COLUMNS, index=pd.date_range("2020", periods=3, tz=PARIS))
    frame.attrs["source"] = (1, 2)

    back = through(frame)

    pd.testing.assert_frame_equal(back, frame, check_exact=True, check_freq=True)
    assert list(back.dtypes) == list(frame.dtypes)
    assert back.attrs == {"source": (1, 2)}
    back.iloc[0, 0] = 5


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pd.DataFrame(), id="empty"),
        pytest.param(pd.DataFrame(index=[1, 2]), id="no columns"),
        pytest.param(pd.DataFrame({"a": []}), id="no rows"),
        pytest.param(pd.DataFrame([[1, "a"]], columns=["x", "x"]), id="repeated labels"),
        pytest.param(
            pd.DataFrame([[1, 2.5]], columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])),
            id="levels",
        ),
    ],
)
def test_an_odd_frame_comes_back(frame: pd.DataFrame) -> None:
    back = through(frame)

    pd.testing.assert_frame_equal(back, frame, check_exact=True)
    assert type(back.index) is type(frame.index)
    assert type(back.columns) is type(frame.columns)


def test_a_promise_of_unique_labels_is_kept() -> None:
    frame = pd.DataFrame({"a": [1]}).set_flags(allows_duplicate_labels=False)
    assert not through(frame).flags.allows_duplicate_labels
    assert not through(frame["a"]).flags.allows_duplicate_labels


SCALARS = [
    pd.Timestamp("2020-01-02T03:04:05.123456789"),
    pd.Timestamp("2020-01-02").as_unit("s"),
    pd.Timestamp("2020-10-25 00:30", tz="UTC").tz_convert(PARIS),
    pd.Timestamp("2020-10-25 01:30", tz="UTC").tz_convert(PARIS),
    pd.Timedelta("1ns"),
    pd.Timedelta(5, "s").as_unit("s"),
    pd.Period("2020Q3", freq="Q-MAR"),
    pd.Interval(1.5, 2, closed="both"),
]


@pytest.mark.parametrize("scalar", SCALARS, ids=repr)
def test_a_scalar_comes_back(scalar: Any) -> None:
    back = through(scalar)

    assert type(back) is type(scalar)
    assert back == scalar
    assert repr(back) == repr(scalar)
    for name in ("unit", "tz", "fold", "nanosecond", "freq", "closed"):
        assert getattr(back, name, None) == getattr(scalar, name, None)


def test_missing_values_are_the_same_objects() -> None:
    assert through(pd.NaT) is pd.NaT
    assert through(pd.NA) is pd.NA


def test_a_frame_inside_a_message_comes_back() -> None:
    frame = pd.DataFrame({"a": [1]})
    back = through(ToolMessage("x", tool_call_id="1", artifact=frame))
    pd.testing.assert_frame_equal(back.artifact, frame)


def test_a_frame_subclass_and_an_unknown_dtype_are_refused() -> None:
    class Sub(pd.DataFrame):
        pass

    with pytest.raises(UnstorableValueError, match="its class is local to a function"):
        CODEC.encode(Sub())
    with pytest.raises(UnstorableValueError, match=r"its dtype is Sparse\[int64, 0\]") as caught:
        CODEC.encode(pd.Series(pd.arrays.SparseArray([0, 1])), "state")
    assert caught.value.where == "state…"
    with pytest.raises(UnstorableValueError) as caught:
        CODEC.encode(pd.Index(pd.arrays.SparseArray([0, 1])), "state")
    assert caught.value.where == "state…"


def test_a_cell_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(
        UnstorableValueError, match=r"state…\[0\] is a function, which cannot be stored"
    ):
        CODEC.encode(pd.DataFrame({"a": [lambda: 1]}), "state")


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match="Install it with: pip install pandas"):
        pandas_extensions()
