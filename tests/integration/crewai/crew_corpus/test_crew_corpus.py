"""Every case gives on a runner what it gives with CrewAI's own ``kickoff()``."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crew_corpus.case import Case
from crew_corpus.conftest import Workers
from crew_corpus.every_case import CASES
from crew_corpus.lab import Lab
from crew_corpus.log import Log
from crew_corpus.probe import DurableProbe, PlainProbe, Probe
from crew_corpus.runners import SPREAD, keep_cold, label_of, runner_of
from crew_corpus.show import show
from dapr_runners.state import StateStore
from engines import Engine

WARM, COLD = "warm", "cold"


@dataclass(frozen=True)
class Observed:
    """What can be seen of a case."""

    trace: list[Any]
    requests: list[Any]
    """What its models were asked."""
    executions: list[Any]
    """What its tools did."""
    code: list[Any]
    """What other code of the user's did."""


@pytest.fixture(params=list(CASES.values()), ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


def observe(case: Case, log: Log, probe: Probe) -> Observed:
    case.script(probe)
    assert probe.raised == case.raises, probe.trace
    requests, executions, code = (show(log.read(kind))[1:] for kind in ("llm", "tool", "code"))
    if case.concurrent:
        for found in (requests, executions, code):
            found.sort(key=repr)
    return Observed(probe.trace, requests, executions, code)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Case], Observed]:
    """What is seen of a case without a runner."""
    folder = tmp_path_factory.mktemp("plain")
    found: dict[str, Observed] = {}

    def get(case: Case) -> Observed:
        if case.name not in found:
            log = Log(folder, case.name)
            probe = PlainProbe(lambda: case.build(Lab(log)), case.answers)
            found[case.name] = observe(case, log, probe)
        return found[case.name]

    return get


def check(
    case: Case, runner: Any, log: Log, plain: Callable[[Case], Observed], *, rebuilt: bool
) -> None:
    """The case on a runner, against the case without one."""
    probe = DurableProbe(runner, case.answers)
    seen, expected = observe(case, log, probe), plain(case)
    assert seen.trace == expected.trace
    if not case.orphans:
        assert seen.requests == expected.requests
        assert seen.executions == expected.executions
    if rebuilt and case.again:
        assert {repr(each) for each in seen.code} == {repr(each) for each in expected.code}
    else:
        assert seen.code == expected.code
    if probe.steps is not None and not case.orphans:
        assert probe.steps["tool"] == len(seen.executions)
        assert case.nested or probe.steps["llm"] == len(seen.requests)


@dataclass(frozen=True)
class Here:
    """Runners that work in this process, by label."""

    folder: Path
    runners: dict[str, Any]


@pytest.fixture(scope="module")
def here(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Here]:
    """On a sidecar of their own: the worker processes would take their work."""
    folder = tmp_path_factory.mktemp("here")
    with engine.sidecar(folder) as sidecar:
        state = StateStore(address=sidecar.address)
        runners: dict[str, Any] = {}
        for case in CASES.values():
            for mode in (WARM, COLD):
                label = label_of(case, mode, "here")
                runners[label] = runner_of(case, label, folder, state, sidecar.grpc_port)
                if mode == COLD:
                    keep_cold(runners[label])
        for runner in runners.values():
            runner.start()
        yield Here(folder, runners)
        for runner in runners.values():
            runner.shutdown()


@pytest.mark.parametrize("mode", [WARM, COLD])
def test_in_one_process(
    case: Case, mode: str, here: Here, plain: Callable[[Case], Observed]
) -> None:
    label = label_of(case, mode, "here")
    check(case, here.runners[label], Log(here.folder, label), plain, rebuilt=mode == COLD)


def test_spread_over_three_processes(
    case: Case, workers: Workers, plain: Callable[[Case], Observed]
) -> None:
    label = label_of(case, SPREAD, workers.tag)
    runner = runner_of(case, label, workers.folder, workers.state, workers.port)
    runner.connect()
    try:
        check(case, runner, Log(workers.folder, label), plain, rebuilt=True)
    finally:
        runner.shutdown()
