"""Extensions that store pandas values: frames, series, indexes and their scalars.

A column is stored as what its values are: a numpy array, or the parts of a pandas extension array.
No pickle and no Arrow is involved; columns of Python objects go through the codec.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dapr_runners.state._codec import Extension
from dapr_runners.state._wire import Malformed, Unstorable


def pandas_extensions() -> tuple[Extension[Any], ...]:
    """Extensions for ``Codec`` that store DataFrame, Series, every Index, Timestamp, Timedelta,
    Period, Interval, NaT and NA, each with its exact dtype.

    Raises ImportError if pandas is not installed.
    """
    try:
        pd = _pandas()
    except ImportError as error:
        raise ImportError(
            "Storing pandas values needs pandas. Install it with: pip install pandas"
        ) from error
    return (
        Extension(pd.DataFrame, "pandas.DataFrame", _encode_frame, _decode_frame),
        Extension(pd.Series, "pandas.Series", _encode_series, _decode_series),
        Extension(pd.RangeIndex, "pandas.RangeIndex", _encode_range, _decode_range),
        Extension(pd.MultiIndex, "pandas.MultiIndex", _encode_multi, _decode_multi),
        *(
            Extension(cls, f"pandas.{cls.__name__}", _encode_index, _index_decoder(cls))
            for cls in (
                pd.Index,
                pd.DatetimeIndex,
                pd.TimedeltaIndex,
                pd.PeriodIndex,
                pd.IntervalIndex,
                pd.CategoricalIndex,
            )
        ),
        Extension(pd.Timestamp, "pandas.Timestamp", _encode_timestamp, _decode_timestamp),
        Extension(pd.Timedelta, "pandas.Timedelta", pd.Timedelta.to_timedelta64, pd.Timedelta),
        Extension(pd.Period, "pandas.Period", _encode_period, _decode_period_scalar),
        Extension(pd.Interval, "pandas.Interval", _encode_interval, _decode_interval_scalar),
        Extension(pd.NaT.__class__, "pandas.NaT", _nothing, lambda _: pd.NaT),
        Extension(pd.NA.__class__, "pandas.NA", _nothing, lambda _: pd.NA),
    )


def _pandas() -> Any:
    import pandas  # pyright: ignore[reportMissingTypeStubs]

    return pandas


# -- frames and series


def _encode_frame(frame: Any) -> list[Any]:
    columns = [_encode_array(frame.iloc[:, place].array) for place in range(frame.shape[1])]
    return [frame.columns, frame.index, columns, frame.attrs, frame.flags.allows_duplicate_labels]


def _decode_frame(parts: list[Any]) -> Any:
    pd = _pandas()
    labels, index, columns, attrs, duplicates = parts
    # By position, then named: labels may be repeated.
    arrays = {place: _decode_array(column) for place, column in enumerate(columns)}
    frame = pd.DataFrame(arrays, index=index, copy=False)
    frame.columns = labels
    frame.attrs = attrs
    return frame if duplicates else frame.set_flags(allows_duplicate_labels=False)


def _encode_series(series: Any) -> list[Any]:
    duplicates = series.flags.allows_duplicate_labels
    return [_encode_array(series.array), series.index, series.name, series.attrs, duplicates]


def _decode_series(parts: list[Any]) -> Any:
    pd = _pandas()
    array, index, name, attrs, duplicates = parts
    values = _decode_array(array)
    series = pd.Series(values, index=index, name=name, dtype=values.dtype, copy=False)
    series.attrs = attrs
    return series if duplicates else series.set_flags(allows_duplicate_labels=False)


# -- indexes


def _encode_index(index: Any) -> list[Any]:
    freq = getattr(index, "freqstr", None) if index.dtype.kind in "mM" else None
    return [_encode_array(index.array), index.name, freq]


def _index_decoder(cls: Any) -> Callable[[Any], Any]:
    def decode(parts: list[Any]) -> Any:
        pd = _pandas()
        array, name, freq = parts
        values = _decode_array(array)
        index = pd.Index(values, name=name, dtype=values.dtype, copy=False)
        if type(index) is not cls:
            raise Malformed(f"a {cls.__name__} came out as a {type(index).__name__}")
        if freq is not None:
            index.freq = freq
        return index

    return decode


def _encode_range(index: Any) -> list[Any]:
    return [index.start, index.stop, index.step, index.name]


def _decode_range(parts: list[Any]) -> Any:
    pd = _pandas()
    start, stop, step, name = parts
    return pd.RangeIndex(start, stop, step, name=name)


def _encode_multi(index: Any) -> list[Any]:
    # An Index of codes would be a FrozenNDArray of older releases; the arrays are the same.
    return [list(index.levels), [_plain(codes) for codes in index.codes], list(index.names)]


def _decode_multi(parts: list[Any]) -> Any:
    pd = _pandas()
    levels, codes, names = parts
    return pd.MultiIndex(levels, codes, names=names)


# -- arrays


def _encode_array(array: Any) -> Any:
    """A numpy array, or the name of a pandas extension array and its parts."""
    import numpy as np

    pd = _pandas()
    dtype = array.dtype
    if isinstance(dtype, np.dtype) or type(array) is pd.arrays.NumpyExtensionArray:
        return _plain(array)
    if isinstance(dtype, pd.CategoricalDtype):
        return ["categorical", _plain(array.codes), dtype.categories, dtype.ordered]
    if isinstance(dtype, pd.DatetimeTZDtype):
        return ["datetimetz", array.to_numpy(f"M8[{dtype.unit}]"), dtype.tz]
    if isinstance(dtype, pd.StringDtype):
        texts = [
            None if missing else text for text, missing in zip(array, array.isna(), strict=True)
        ]
        return ["string", dtype.storage, dtype.na_value is pd.NA, texts]
    if isinstance(dtype, pd.PeriodDtype):
        return ["period", dtype.name, array.asi8]
    if isinstance(dtype, pd.IntervalDtype):
        return ["interval", dtype.closed, array.left, array.right]
    if dtype.name in _MASKED:
        return ["masked", dtype.name, array.to_numpy(dtype.numpy_dtype, na_value=0), array.isna()]
    raise Unstorable(
        array,
        f"its dtype is {dtype}",
        "Convert it with astype to a dtype of numpy or pandas' own, or to object.",
    )


_MASKED = frozenset(
    (
        *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
        *("Float32", "Float64", "boolean"),
    )
)


def _decode_array(parts: Any) -> Any:
    if type(parts) is not list:
        return parts
    return _ARRAYS[parts[0]](*parts[1:])


def _decode_categorical(codes: Any, categories: Any, ordered: bool) -> Any:
    pd = _pandas()
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(categories, ordered))


def _decode_datetimetz(moments: Any, tz: Any) -> Any:
    pd = _pandas()
    return pd.DatetimeIndex(moments, tz="UTC").tz_convert(tz).array


def _decode_string(storage: str, na: bool, texts: list[str | None]) -> Any:
    import numpy as np

    pd = _pandas()
    return pd.array(texts, dtype=pd.StringDtype(storage, na_value=pd.NA if na else np.nan))


def _decode_period(dtype: str, ordinals: Any) -> Any:
    pd = _pandas()
    return pd.arrays.PeriodArray(ordinals, dtype=dtype)


def _decode_interval(closed: Any, left: Any, right: Any) -> Any:
    pd = _pandas()
    return pd.arrays.IntervalArray.from_arrays(left, right, closed=closed)


def _decode_masked(dtype: str, values: Any, mask: Any) -> Any:
    pd = _pandas()
    if dtype == "boolean":
        return pd.arrays.BooleanArray(values, mask)
    if dtype.startswith("Float"):
        return pd.arrays.FloatingArray(values, mask)
    return pd.arrays.IntegerArray(values, mask)


_ARRAYS: Mapping[str, Callable[..., Any]] = {
    "categorical": _decode_categorical,
    "datetimetz": _decode_datetimetz,
    "string": _decode_string,
    "period": _decode_period,
    "interval": _decode_interval,
    "masked": _decode_masked,
}


def _plain(array: Any) -> Any:
    import numpy as np

    return np.asarray(array)


# -- scalars


def _encode_timestamp(moment: Any) -> list[Any]:
    return [moment.to_datetime64(), moment.tz]


def _decode_timestamp(parts: list[Any]) -> Any:
    pd = _pandas()
    moment, tz = parts
    stamp = pd.Timestamp(moment)
    return stamp if tz is None else stamp.tz_localize("UTC").tz_convert(tz)


def _encode_period(period: Any) -> list[Any]:
    return [period.ordinal, period.freqstr]


def _decode_period_scalar(parts: list[Any]) -> Any:
    pd = _pandas()
    ordinal, freq = parts
    return pd.Period(ordinal=ordinal, freq=freq)


def _encode_interval(interval: Any) -> list[Any]:
    return [interval.left, interval.right, interval.closed]


def _decode_interval_scalar(parts: list[Any]) -> Any:
    pd = _pandas()
    left, right, closed = parts
    return pd.Interval(left, right, closed)


def _nothing(value: object) -> None:
    return None
