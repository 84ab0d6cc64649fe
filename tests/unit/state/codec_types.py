"""Classes for the codec tests, importable by name as those of a program are."""

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import functools
import typing
from typing import Any, Generic, TypeVar

import attrs
import pydantic
import pydantic.v1

T = TypeVar("T")


def refuse_to_run(*args: object, **kwargs: object) -> typing.NoReturn:
    """Rebuilding a value must not run code of its class."""
    raise AssertionError("code of a class ran")


# -- enumerations


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"
    CRIMSON = "r"  # noqa: PIE796


class Word(enum.StrEnum):
    A = "a"


class Mixed(str, enum.Enum):  # noqa: UP042
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    ALL = 3


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Outer:
    class Shade(enum.Enum):
        DARK = 1

    @dataclasses.dataclass
    class Inner:
        a: int

    class Model(pydantic.BaseModel):
        a: int


# -- dataclasses


@dataclasses.dataclass
class Point:
    x: int
    tags: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: int


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    a: int
    b: Any = None


@dataclasses.dataclass(slots=True)
class SlotsChild(Point):
    z: int = 3


@dataclasses.dataclass(kw_only=True)
class Awkward:
    """Its constructor changes what it is given, so a value is not exact if it runs again."""

    a: int
    seed: dataclasses.InitVar[int] = 0
    late: int = dataclasses.field(init=False)
    constant: int = dataclasses.field(init=False, default=7)

    def __post_init__(self, seed: int) -> None:
        self.a += 1
        self.late = seed


@dataclasses.dataclass
class Cached:
    a: int

    @functools.cached_property
    def lock(self) -> Any:
        import threading

        return threading.Lock()


@dataclasses.dataclass
class Box(Generic[T]):
    item: T


@dataclasses.dataclass
class Chain:
    next: Any = None


# -- pydantic


class Animal(pydantic.BaseModel):
    name: str


class Dog(Animal):
    breed: str = "b"


class Zoo(pydantic.BaseModel):
    animal: Animal
    cage: tuple[int, ...] = ()
    inner: "Zoo | None" = None


class Private(pydantic.BaseModel):
    a: int
    _hidden: Any = pydantic.PrivateAttr(default=None)


class Extra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int = 1


class Strict(pydantic.BaseModel):
    """Its validator refuses what model_construct lets through."""

    model_config = pydantic.ConfigDict(frozen=True)
    a: int

    @pydantic.field_validator("a")
    @classmethod
    def _positive(cls, a: int) -> int:
        if a < 0:
            raise ValueError("negative")
        return a * 2


class Rows(pydantic.RootModel[list[int]]):
    pass


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


IntPage = Page[int]


class Secrets(pydantic.BaseModel):
    key: pydantic.SecretStr
    raw: pydantic.SecretBytes = pydantic.SecretBytes(b"x")
    url: pydantic.HttpUrl | None = None
    dsn: pydantic.PostgresDsn | None = None
    size: pydantic.ByteSize = pydantic.ByteSize(3)


class Computed(pydantic.BaseModel):
    a: int

    @pydantic.computed_field
    @functools.cached_property
    def double(self) -> int:
        return self.a * 2


@pydantic.dataclasses.dataclass
class Checked:
    a: int


class Old(pydantic.v1.BaseModel):
    x: int
    y: int = 2
    _p: int = pydantic.v1.PrivateAttr(default=1)


# -- attrs and plain classes


@attrs.define
class Attrs:
    a: int


@attrs.frozen(slots=False)
class AttrsDict:
    a: int


class Plain:
    def __init__(self, a: object) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return type(other) is Plain and other.a == self.a

    __hash__ = None  # type: ignore[assignment]


class Slots:
    __slots__ = ("a", "b")
    size, find = len, dict.get  # functions written in C, but not of this class

    def __init__(self, a: object) -> None:
        self.a = a


class Hostile:
    """A plain class all of whose entry points refuse to run."""

    __reduce_ex__ = __setstate__ = __setattr__ = __init_subclass__ = refuse_to_run
    __init__ = refuse_to_run
    prop = property(refuse_to_run, refuse_to_run)

    def __new__(cls) -> "Hostile":
        refuse_to_run()


# -- subclasses of built-in types

NT = collections.namedtuple("NT", "a b")


class Typed(typing.NamedTuple):
    a: int
    b: tuple[Any, ...]


class MyInt(int):
    pass


class MyFloat(float):
    pass


class MyComplex(complex):
    pass


class MyStr(str):
    pass


class MyBytes(bytes):
    pass


class MyBytearray(bytearray):
    pass


class MyList(list[Any]):
    pass


class MyTuple(tuple[Any, ...]):
    pass


class MyDict(dict[Any, Any]):
    __setitem__ = update = items = __iter__ = refuse_to_run  # type: ignore[assignment]


class MySet(set[Any]):
    pass


class MyFrozenset(frozenset[Any]):
    pass


class MyDeque(collections.deque[Any]):
    pass


class MyOrdered(collections.OrderedDict[Any, Any]):
    pass


class MyDefault(collections.defaultdict[Any, Any]):
    pass


class MyCounter(collections.Counter[Any]):
    pass


class MyDecimal(decimal.Decimal):
    pass


class MyDatetime(dt.datetime):
    pass


class MyDate(dt.date):
    pass


class MyTime(dt.time):
    pass


class MyTimedelta(dt.timedelta):
    pass


def with_attribute(value: Any) -> Any:
    """``value`` with an attribute of its own."""
    value.extra = (1, 2)
    return value


# -- exceptions


class Needy(Exception):
    def __init__(self, *, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Shown(Exception):
    def __init__(self, client: object) -> None:
        super().__init__()
        self.client = client

    def __str__(self) -> str:
        return self.client.name  # type: ignore[attr-defined]


class SlotError(Exception):
    __slots__ = ("detail",)


class MyGroup(ExceptionGroup[Exception]):
    pass


class MyOSError(OSError):
    pass
