"""Anything is killed with SIGKILL while runs are under way: they go on by themselves.

No run is lost, nothing recorded runs again, and a step in flight runs once more at most. It is told
at the end how long it took until every run had begun a new step; docs/failover.md has the figures.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from harness.cluster import Cluster
from harness.load import Load
from harness.processes import WorkerProcess

from dapr_real import Dapr
from engines import Engine

pytestmark = pytest.mark.timeout(360)
Tell = Callable[[str, float], None]


@pytest.fixture(scope="module")
def tell(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Tell]:
    """Takes what was killed, and how many seconds it took."""
    told: list[tuple[str, float]] = []
    yield lambda what, seconds: told.append((what, seconds))
    store = engine.store.name if isinstance(engine, Dapr) else "its own"
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else ExitStack():
        for what, seconds in told:
            print(f"\n| {engine.name}, {store} | {what} | {seconds:.1f} |", end="")  # noqa: T201


@pytest.fixture
def load(cluster: Cluster) -> Load:
    """Runs under way on two workers."""
    cluster.use("load_graphs:loop")
    return Load(cluster)


def _workers(cluster: Cluster) -> list[WorkerProcess]:
    return [cluster.worker(), cluster.worker()]


def test_one_of_two_workers(cluster: Cluster, load: Load, tell: Tell) -> None:
    first, _ = _workers(cluster)
    load.wait_underway()
    first.kill()
    load.killed()
    tell("one of two workers", load.seconds_to_progress())
    load.check_ended()


def test_every_worker(cluster: Cluster, load: Load, tell: Tell) -> None:
    workers = _workers(cluster)
    load.wait_underway()
    for worker in workers:
        worker.kill()
    load.killed()
    _workers(cluster)
    tell("all workers, started again at once", load.seconds_to_progress())
    load.check_ended()


def test_the_sidecar(cluster: Cluster, load: Load, tell: Tell) -> None:
    _workers(cluster)
    load.wait_underway()
    cluster.sidecar.kill()
    load.killed()
    cluster.sidecar.start()
    tell("the sidecar", load.seconds_to_progress())
    load.check_ended()


def test_the_sidecar_and_every_worker(cluster: Cluster, load: Load, tell: Tell) -> None:
    workers = _workers(cluster)
    load.wait_underway()
    cluster.sidecar.kill()
    for worker in workers:
        worker.kill()
    load.killed()
    cluster.sidecar.start()
    _workers(cluster)
    tell("the sidecar and all workers", load.seconds_to_progress())
    load.check_ended()


def test_a_worker_that_freezes(cluster: Cluster, load: Load, tell: Tell) -> None:
    first, _ = _workers(cluster)
    load.wait_underway()
    first.freeze()
    load.killed()
    tell("one of two workers, with SIGSTOP", load.seconds_to_progress())
    first.kill()
    load.check_ended()


def test_a_rolling_deploy(cluster: Cluster) -> None:
    """Every worker is replaced under load, with SIGTERM: nothing runs twice."""
    cluster.use("load_graphs:loop")
    old = [cluster.server(), cluster.server(), cluster.server()]
    load = Load(cluster, kills=False)
    load.wait_underway()
    for worker in old:
        cluster.server()
        worker.terminate()
        assert worker.reply(60) is None
        worker.kill()
    load.check_ended(in_flight=False)


# -- what only a real Dapr has


@pytest.fixture
def on_dapr(engine: Engine) -> Dapr:
    if not isinstance(engine, Dapr):
        pytest.skip("the embedded sidecar has no services beside it, and no replicas")
    return engine


def test_placement(on_dapr: Dapr, cluster: Cluster, load: Load, tell: Tell) -> None:
    _workers(cluster)
    load.wait_underway()
    on_dapr.placement.kill()
    load.killed()
    on_dapr.placement.start()
    tell("placement", load.seconds_to_progress())
    load.check_ended()


def test_the_scheduler(on_dapr: Dapr, cluster: Cluster, load: Load, tell: Tell) -> None:
    _workers(cluster)
    load.wait_underway()
    on_dapr.scheduler.kill()
    load.killed()
    on_dapr.scheduler.start()
    tell("the scheduler", load.seconds_to_progress())
    load.check_ended()


def test_the_store(on_dapr: Dapr, cluster: Cluster, load: Load, tell: Tell) -> None:
    server = on_dapr.store_server
    if server is None:
        pytest.skip("the store is a file: TEST_DAPR_STORE names one with a server")
    _workers(cluster)
    load.wait_underway()
    server.kill()
    load.killed()
    server.start()
    tell("the store's server", load.seconds_to_progress())
    load.check_ended()


def test_everything(on_dapr: Dapr, cluster: Cluster, load: Load, tell: Tell) -> None:
    workers = _workers(cluster)
    load.wait_underway()
    services = [on_dapr.placement, on_dapr.scheduler]
    services += [on_dapr.store_server] if on_dapr.store_server else []
    cluster.sidecar.kill()
    for each in (*services, *workers):
        each.kill()
    load.killed()
    for service in reversed(services):
        service.start()
    cluster.sidecar.start()
    _workers(cluster)
    tell("everything", load.seconds_to_progress())
    load.check_ended()


@pytest.mark.parametrize("killed", ["worker", "sidecar", "both"])
def test_one_of_two_replicas(
    killed: str, on_dapr: Dapr, cluster: Cluster, tmp_path: Path, tell: Tell
) -> None:
    cluster.use("load_graphs:loop")
    with on_dapr.sidecar(tmp_path / "second", cluster.sidecar.app_id) as second:
        cluster.worker()
        worker = cluster.worker(address=second.address)
        load = Load(cluster)
        load.wait_underway()
        if killed != "worker":
            second.kill()
        if killed != "sidecar":
            worker.kill()
        load.killed()
        what = {"both": "sidecar and worker"}.get(killed, killed)
        tell(f"the {what} of one of two replicas", load.seconds_to_progress())
        load.check_ended()
