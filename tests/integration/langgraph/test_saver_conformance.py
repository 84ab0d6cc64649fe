"""LangGraph's own conformance suite for checkpointers, on a sidecar."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from dapr_runners.langgraph import DaprSaver
from dapr_runners.state import StateStore
from engines import Sidecar

LEAST = {
    Capability.PUT: 17,
    Capability.PUT_WRITES: 10,
    Capability.GET_TUPLE: 10,
    Capability.LIST: 16,
    Capability.DELETE_THREAD: 5,
    Capability.DELETE_FOR_RUNS: 7,
    Capability.COPY_THREAD: 8,
    Capability.PRUNE: 8,
}
"""How many tests of each capability the suite has at least: none is to be skipped unnoticed."""


async def test_passes_all_of_the_conformance_suite(
    sidecar: Sidecar, capsys: pytest.CaptureFixture[str]
) -> None:
    @checkpointer_test(name="DaprSaver")
    async def saver() -> AsyncGenerator[Any, None]:
        store = StateStore(address=sidecar.address)
        yield DaprSaver(store)
        store.close()

    report = await validate(saver)
    with capsys.disabled():
        report.print_report()
    failures = {name: result.failures for name, result in report.results.items()}
    assert not any(failures.values()), failures
    for capability, least in LEAST.items():
        result = report.results[capability.value]
        assert result.detected
        assert result.passed
        assert result.tests_passed >= least
    assert report.passed_all_base()
    assert report.passed_all()
