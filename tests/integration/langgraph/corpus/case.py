"""What a case is, and the list of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from corpus.probe import Probe


@dataclass(frozen=True)
class Services:
    """What a graph is compiled with: a checkpointer, a store and a cache."""

    saver: Any
    store: Any
    cache: Any

    def compile(self, builder: Any, **options: Any) -> Any:
        """``builder`` as a graph on these services."""
        return builder.compile(
            checkpointer=self.saver, store=self.store, cache=self.cache, **options
        )


Build: TypeAlias = Callable[[Services], Any]
Script: TypeAlias = Callable[[Probe], None]


@dataclass(frozen=True)
class Case:
    """A graph, made by ``build`` in whichever process needs it, and what is done with it."""

    name: str
    build: Build
    script: Script


CASES: dict[str, Case] = {}


def case(build: Build) -> Callable[[Script], Script]:
    """Add a script on the graph of ``build`` to the corpus, as ``<module>.<function>``."""

    def add(script: Script) -> Script:
        name = f"{script.__module__.rpartition('.')[2]}.{script.__name__}"
        assert name not in CASES, name
        CASES[name] = Case(name, build, script)
        return script

    return add
