"""All cases, in the list of ``corpus.case``."""

from corpus import (
    agents,
    basics,
    corners,
    failures,
    functional,
    injection,
    interrupts,
    real_threads,
    real_threads_nested,
    send_and_command,
    state_types,
    streaming,
    subgraphs,
    subgraphs_together,
    time_travel,
)
from corpus.case import CASES

__all__ = ["CASES", "MODULES"]

MODULES = (
    agents,
    basics,
    corners,
    failures,
    functional,
    injection,
    interrupts,
    real_threads,
    real_threads_nested,
    send_and_command,
    state_types,
    streaming,
    subgraphs,
    subgraphs_together,
    time_travel,
)
