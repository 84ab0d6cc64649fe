"""Which classes may be rebuilt from a record."""

import collections
from collections.abc import Iterable, Mapping
from typing import final

from dapr_runners.state._annotations import classes_in
from dapr_runners.state._builtin_types import ENCODERS as _BUILTIN_ENCODERS
from dapr_runners.state._classes import (
    BUILTIN_BASES,
    find_class,
    is_data_class,
    name_of,
)
from dapr_runners.state._times import ENCODERS as _TIME_ENCODERS

_SAFE: Mapping[str, type] = {
    name_of(cls): cls
    for cls in (
        *_BUILTIN_ENCODERS,
        *_TIME_ENCODERS,
        *BUILTIN_BASES,
        object,
        bool,
        type(None),
        collections.ChainMap,
        collections.Counter,
        collections.UserDict,
        collections.UserList,
        collections.UserString,
    )
}
_SAFE_ELSEWHERE = frozenset(
    (
        "pydantic.types:ByteSize",
        "pydantic.types:Secret",
        "pydantic.types:SecretBytes",
        "pydantic.types:SecretStr",
        "pydantic.networks:AmqpDsn",
        "pydantic.networks:AnyHttpUrl",
        "pydantic.networks:AnyUrl",
        "pydantic.networks:AnyWebsocketUrl",
        "pydantic.networks:ClickHouseDsn",
        "pydantic.networks:CockroachDsn",
        "pydantic.networks:FileUrl",
        "pydantic.networks:FtpUrl",
        "pydantic.networks:HttpUrl",
        "pydantic.networks:KafkaDsn",
        "pydantic.networks:MariaDBDsn",
        "pydantic.networks:MongoDsn",
        "pydantic.networks:MySQLDsn",
        "pydantic.networks:NatsDsn",
        "pydantic.networks:PostgresDsn",
        "pydantic.networks:RedisDsn",
        "pydantic.networks:SnowflakeDsn",
        "pydantic.networks:WebsocketUrl",
    )
)


@final
class AllowList:
    """The classes that may be rebuilt from a record. Immutable; ``a | b`` allows what either does.

    Without anything, the types of the standard library that the codec knows. Exceptions need no
    permission: of a class that is not imported, the name and message come back.
    """

    __slots__ = ("_ambiguous", "_modules", "_named", "_packages")

    def __init__(self) -> None:
        self._named: Mapping[str, type] = {}
        self._ambiguous: frozenset[str] = frozenset()
        self._modules: frozenset[str] = frozenset()
        self._packages: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, *roots: object, modules: Iterable[str] = (), extra: Iterable[object] = ()
    ) -> "AllowList":
        """An allow-list drawn from what a program says it stores.

        ``roots``: schemas, type hints or functions. The dataclasses, attrs classes, pydantic
        models, Enums, NamedTuples and subclasses of built-in types that their annotations name,
        however deep, are allowed, and so are their subclasses.
        ``modules``: names of modules, all of whose classes of those kinds are allowed once the
        program has imported the module; ``"package.*"`` covers a package and what is in it.
        ``extra``: more classes, of any kind: of a plain class, the attributes are kept. Type hints
        are taken as ``roots`` are.
        """
        extra = tuple(extra)
        for name in extra:
            if isinstance(name, str):
                raise TypeError(f"A class is needed where the string {name!r} is: import it.")
        names = frozenset(modules)
        return cls()._with(
            (*classes_in((*roots, *extra)), *(item for item in extra if isinstance(item, type))),
            frozenset(name for name in names if not name.endswith(".*")),
            tuple(sorted(name[:-1] for name in names if name.endswith(".*"))),
        )

    def __or__(self, other: "AllowList") -> "AllowList":
        merged = self._with(
            other._named.values(),
            self._modules | other._modules,
            tuple(sorted({*self._packages, *other._packages})),
        )
        merged._ambiguous |= self._ambiguous | other._ambiguous
        return merged

    def allows(self, cls: type) -> bool:
        """Whether an instance of ``cls`` may be stored, and rebuilt from a record."""
        name = name_of(cls)
        if name in _SAFE:
            return _SAFE[name] is cls
        if self._named.get(name) is cls:
            return name not in self._ambiguous
        if find_class(name) is not cls:
            return False
        return (
            name in _SAFE_ELSEWHERE
            or self._covers(cls)
            or cls in classes_in(self._named.values(), subclasses=True)
        )

    def find(self, name: str) -> type | None:
        """The allowed class a record calls ``name`` (``module:Outer.Inner``), or None."""
        cls = self._named.get(name) or _SAFE.get(name) or find_class(name)
        return cls if cls is not None and self.allows(cls) else None

    def find_exception(self, name: str) -> type[BaseException] | None:
        """The exception class a record calls ``name``, if the program has imported it."""
        cls = self._named.get(name) or find_class(name)
        return cls if cls is not None and issubclass(cls, BaseException) else None

    def _covers(self, cls: type) -> bool:
        module = cls.__module__
        within = module in self._modules or f"{module}.".startswith(self._packages)
        return within and is_data_class(cls)

    def _with(
        self, classes: Iterable[type], modules: frozenset[str], packages: tuple[str, ...]
    ) -> "AllowList":
        made = AllowList()
        named = dict(self._named)
        ambiguous: set[str] = set()
        for cls in classes:
            if named.setdefault(name_of(cls), cls) is not cls:
                ambiguous.add(name_of(cls))
        made._named = named
        made._ambiguous = frozenset(ambiguous)
        made._modules = modules
        made._packages = packages
        return made
