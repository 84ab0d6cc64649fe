"""How CrewAI's functions are replaced: once a process, each by one that does the same outside of a
driven run."""

import functools
from collections.abc import Callable
from typing import Any, cast


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Let ``owner.name`` be what ``make`` returns for the original."""
    raw: Any = cast(dict[str, Any], vars(owner)).get(name)
    kinds: tuple[Any, ...] = (staticmethod, classmethod)
    kind = next((kind for kind in kinds if isinstance(raw, kind)), None)
    original: Any = getattr(owner, name) if kind is None else raw.__func__
    made: Any = make(original)
    functools.update_wrapper(made, original)
    setattr(owner, name, made if kind is None else kind(made))
