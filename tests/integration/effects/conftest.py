"""Steps whose effects are recorded in a sidecar's state store, and runners on it."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from effect_helpers import CountingStore, StepMaker

from dapr_runners._current_step import CurrentStep
from dapr_runners.effects import EffectHost
from dapr_runners.langgraph import DaprWorkflowGraphRunner
from dapr_runners.state import AllowList, Codec
from engines import Sidecar


@pytest.fixture
def store(sidecar: Sidecar) -> Iterator[CountingStore]:
    """The state store of a sidecar, which counts what is written."""
    store = CountingStore(address=sidecar.address)
    yield store
    store.close()


@pytest.fixture
def make_step(store: CountingStore) -> StepMaker:
    """Makes attempts at steps of one run, as a process begins them."""
    run = f"run-{uuid4().hex[:8]}"
    host = EffectHost(store, Codec(AllowList()))

    def make(
        key: str = "1:step", attempt: int = 1, tenant: str = "", run_id: str = run
    ) -> CurrentStep:
        return host.step(run_id, key, attempt, name="step", tenant=tenant, order=(0, attempt))

    return make


@pytest.fixture
def make_runner(store: CountingStore) -> Iterator[Callable[..., DaprWorkflowGraphRunner]]:
    """Makes runners that work, and count what they write."""
    made: list[DaprWorkflowGraphRunner] = []

    def make(graph: Any, **options: Any) -> DaprWorkflowGraphRunner:
        port = store.address.rpartition(":")[2]
        name = f"test-{uuid4().hex[:8]}"
        made.append(DaprWorkflowGraphRunner(graph, name=name, port=port, store=store, **options))
        made[-1].start()
        return made[-1]

    yield make
    for runner in made:
        runner.shutdown()
