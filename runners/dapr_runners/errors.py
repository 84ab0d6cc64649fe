"""The root of every exception this package raises on its own account.

An error class is a dataclass: its fields carry the data, its docstring is its message, with the
fields filled in. The message says the cause, what follows from it, and what to do.
"""

import inspect
from dataclasses import dataclass, fields
from typing import ClassVar, Literal, TypeAlias

ErrorCategory: TypeAlias = Literal[
    "failed", "usage", "not found", "no sidecar", "refused", "no worker"
]
"""What kind of thing went wrong: the commands' exit codes tell it."""


@dataclass(eq=False)
class DaprRunnersError(Exception):
    """A dapr-runners operation failed."""

    category: ClassVar[ErrorCategory] = "failed"

    def __post_init__(self) -> None:
        # Exception's own args make copy, pickle and the codec rebuild the same object.
        super().__init__(*(getattr(self, field.name) for field in fields(self)))

    def __str__(self) -> str:
        data = {field.name: getattr(self, field.name) for field in fields(self)}
        template = " ".join(inspect.cleandoc(type(self).__doc__ or type(self).__name__).split())
        return template.format(**data)
