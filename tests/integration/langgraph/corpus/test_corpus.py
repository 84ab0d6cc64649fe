"""Every case gives on a runner what it gives on a plain compiled graph."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from corpus.case import Case, Services
from corpus.conftest import Workers
from corpus.every_case import CASES
from corpus.marks import FAULTS, MARKS, count_marks
from corpus.origins import FEATURES, REAL_THREADS
from corpus.probe import Probe
from corpus.runners import SAVERS, runner_of
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.state import StateStore
from engines import Engine


@dataclass(frozen=True)
class Observed:
    """What can be seen of a case."""

    trace: list[Any]
    executions: Counter[str]
    faults: Counter[str]


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def observe(case: Case, label: str, graph: Any, marks: Path, *, is_async: bool) -> Observed:
    """Run the script. Its threads have the ``label`` in their names."""
    before, faults = count_marks(marks, label), count_marks(marks, FAULTS)
    probe = Probe(graph, label, is_async=is_async)
    case.script(probe)
    return Observed(
        probe.trace, count_marks(marks, label) - before, count_marks(marks, FAULTS) - faults
    )


def in_memory() -> Services:
    return Services(InMemorySaver(), InMemoryStore(), InMemoryCache())


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The marks of what runs in this process."""
    monkeypatch.setenv(MARKS, str(tmp_path / "marks"))
    return tmp_path / "marks"


@pytest.mark.parametrize("saver", SAVERS)
def test_in_separate_processes(case: Case, saver: str, workers: Workers, marks: Path) -> None:
    label = f"{case.name}-{saver}-{workers.tag}"
    expected = observe(case, label, case.build(in_memory()), marks, is_async=False)
    services = workers.services[saver]
    runner = runner_of(case, saver, services, workers.state, workers.tag, workers.port)
    runner.connect()
    try:
        seen = observe(case, label, runner, workers.marks, is_async=False)
    finally:
        runner.shutdown()
    assert seen == expected


MODES = {"blocking": False, "async": True}


@pytest.fixture(scope="module")
def runners_here(
    engine: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """Runners of all cases that work in this process, on a sidecar of their own: the worker
    processes would take their work. By label."""
    with engine.sidecar(tmp_path_factory.mktemp("here")) as sidecar:
        state = StateStore(address=sidecar.address)
        runners = {
            label: DaprWorkflowGraphRunner(
                case.build(in_memory()), name=label, store=state, port=sidecar.grpc_port
            )
            for case in CASES.values()
            for label in (f"{case.name}-{mode}" for mode in MODES)
        }
        for runner in runners.values():
            runner.start()
        yield runners
        for runner in runners.values():
            runner.shutdown()


@pytest.mark.parametrize("mode", MODES)
def test_in_one_process(
    case: Case,
    mode: str,
    runners_here: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    label, is_async = f"{case.name}-{mode}", MODES[mode]
    plain, durable = tmp_path / "plain", tmp_path / "durable"
    monkeypatch.setenv(MARKS, str(plain))
    expected = observe(case, label, case.build(in_memory()), plain, is_async=is_async)
    monkeypatch.setenv(MARKS, str(durable))
    assert observe(case, label, runners_here[label], durable, is_async=is_async) == expected


def test_no_case_of_the_prototype_is_missing() -> None:
    assert len(FEATURES) == 61
    assert len(REAL_THREADS) == 15
    origins = [*FEATURES.values(), *REAL_THREADS.values()]
    assert len(set(origins)) == len(origins)
    assert set(origins) <= CASES.keys()
