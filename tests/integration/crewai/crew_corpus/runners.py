"""The runners of the corpus: the same in every process of a test session."""

import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

from crewai import Agent, Crew

from crew_corpus.case import Case
from crew_corpus.every_case import CASES
from crew_corpus.lab import Lab
from crew_corpus.log import Log
from dapr_runners.crewai import (
    DaprWorkflowAgentRunner,
    DaprWorkflowCrewRunner,
    DaprWorkflowFlowRunner,
)
from dapr_runners.engine import Work
from dapr_runners.state import StateStore

SPREAD = "spread"


def runner_of(
    case: Case, label: str, folder: Path, state: StateStore | None = None, port: int | None = None
) -> Any:
    """A runner of ``case``, named ``label``. Its runs leave their log in ``folder``."""

    @functools.wraps(case.build)
    def factory(inputs: Any) -> Any:
        return case.build(Lab(Log(folder, label)))

    match get_type_hints(case.build)["return"]:
        case kind if kind is Crew:
            runner = DaprWorkflowCrewRunner
        case kind if kind is Agent:
            runner = DaprWorkflowAgentRunner
        case _:
            runner = DaprWorkflowFlowRunner
    return runner(factory, name=label, store=state, port=port)


def label_of(case: Case, mode: str, tag: str) -> str:
    """The name of the runner, and of the log, of a case in one of the ways it is run."""
    return f"{case.name}-{mode}-{tag}"


def all_runners(folder: str, tag: str) -> Iterator[Any]:
    """For the worker processes: the runners of all cases."""
    state = StateStore()
    for case in CASES.values():
        yield runner_of(case, label_of(case, SPREAD, tag), Path(folder), state)


def keep_cold(runner: Any) -> None:
    """Have the process forget what it holds of a run before each activity, as if another took
    over; where activities run side by side, before the first of them."""
    adapter = runner._adapter
    perform = adapter.perform
    running: Counter[str] = Counter()

    async def perform_cold(work: Work, io: Any) -> Any:
        if not running[work.run]:
            adapter.forget(work.run)
        running[work.run] += 1
        try:
            return await perform(work, io)
        finally:
            running[work.run] -= 1

    adapter.perform = perform_cold
