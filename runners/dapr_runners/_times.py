"""Times, for people and for programs that read what is printed: always in UTC, and saying so."""

from datetime import UTC, datetime
from typing import Any, cast

NEVER = datetime.min.replace(tzinfo=UTC)
"""Before all others: for a time that is not known."""


def shown(when: datetime | float | None) -> str:
    """``when``, in seconds since the epoch or as a datetime, for people; "-" for none."""
    return "-" if when is None else f"{utc(when):%Y-%m-%d %H:%M:%S}Z"


def iso(when: datetime | float | None) -> str | None:
    """``when`` in ISO 8601, with microseconds and the offset; None for none, and for the epoch."""
    return None if not when else utc(when).isoformat(timespec="microseconds")


_TIMES = (
    "created_at",
    "last_updated_at",
    "started_at",
    "updated_at",
    "finished_at",
    "lease_expiration",
    "began",
    "ended",
    "time",
    "at",
)
"""Names of what is a time where it is a number: seconds since the epoch."""


def with_iso(value: Any) -> Any:
    """Plain ``value``, in which times are in ISO 8601: datetimes, and seconds since the epoch by
    the names they have in what is recorded."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, dict):
        return {
            name: iso(each) if name in _TIMES and isinstance(each, float) else with_iso(each)
            for name, each in cast(dict[str, Any], value).items()
        }
    if isinstance(value, list):
        return [with_iso(each) for each in cast(list[Any], value)]
    return value


def duration(seconds: float) -> str:
    """What has taken ``seconds``, to the second."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, whole = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{whole:02}s"


def took(seconds: float) -> str:
    """The same; to the millisecond, if it is less than ten seconds."""
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else duration(seconds)


def utc(when: datetime | float) -> datetime:
    """``when``, in seconds since the epoch or as a datetime, as one that says that it is in UTC."""
    if isinstance(when, datetime):
        # The SDK's have no time zone, and are in UTC.
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return datetime.fromtimestamp(when, UTC)
