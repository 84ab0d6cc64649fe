"""How CrewAI's functions are replaced: once a process, each by one that does the same outside of a
driven run."""

import functools
from collections.abc import Callable
from typing import Any, cast


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Let ``owner.name`` be what ``make`` returns for the original."""
    own = cast(dict[str, Any], vars(owner))
    raw: Any = own.get(name)
    original: Any = raw.__func__ if isinstance(raw, staticmethod) else getattr(owner, name)
    made: Any = make(original)
    functools.update_wrapper(made, original)
    setattr(owner, name, staticmethod(made) if isinstance(raw, staticmethod) else made)
