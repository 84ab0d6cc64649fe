"""All cases, in the list of ``crew_corpus.case``."""

from crew_corpus import (
    agents,
    failures,
    flows,
    knowing,
    limits,
    managers,
    people,
    side_by_side,
    tasks,
    tools,
)
from crew_corpus.case import CASES

__all__ = ["CASES", "MODULES"]

MODULES = (
    agents,
    failures,
    flows,
    knowing,
    limits,
    managers,
    people,
    side_by_side,
    tasks,
    tools,
)
