"""The state most graphs of the corpus have, and nodes on it."""

import operator
from collections.abc import Callable
from typing import Annotated, Any

from typing_extensions import TypedDict

from corpus.marks import mark


class State(TypedDict, total=False):
    x: int
    log: Annotated[list[Any], operator.add]


def logs(name: str, **update: Any) -> Callable[[State], dict[str, Any]]:
    """A node that logs its ``name``."""

    def node(state: State) -> dict[str, Any]:
        mark(name)
        return {"log": [name], **update}

    return node
