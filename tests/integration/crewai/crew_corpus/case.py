"""What a case is, and the list of all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from crew_corpus.lab import Lab
from crew_corpus.probe import Probe

Build: TypeAlias = Callable[[Lab], Any]
Script: TypeAlias = Callable[[Probe], None]


def kickoff(it: Probe) -> None:
    """The script of most cases."""
    it.kicks_off()


@dataclass(frozen=True)
class Case:
    """A crew, a flow or an agent, made by ``build`` in whichever process needs it, and what is done
    with it."""

    name: str
    build: Build
    script: Script
    answers: tuple[str, ...] = ()
    """What the person says, in order."""
    concurrent: bool = False
    """Whether models and tools are called side by side, so that the order means nothing."""
    raises: bool = False
    """Whether it ends with an exception."""
    again: bool = False
    """Whether a rebuild runs code of the user's (hooks, methods of a flow) again."""
    orphans: bool = False
    """Whether CrewAI itself lets agents go on after the end, for nothing: as far as they get."""
    nested: bool = False
    """Whether models are called inside of other steps, too."""


CASES: dict[str, Case] = {}


def case(script: Script = kickoff, **options: Any) -> Callable[[Build], Build]:
    """Add a factory to the corpus, as ``<module>.<function>``."""

    def add(build: Build) -> Build:
        name = f"{build.__module__.rpartition('.')[2]}.{build.__name__}"
        assert name not in CASES, name
        CASES[name] = Case(name, build, script, **options)
        return build

    return add
