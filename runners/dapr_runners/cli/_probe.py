"""What Kubernetes asks of a worker: whether it works, and whether to start it anew would help."""

from collections.abc import Iterator

from dapr_runners.cli._findings import Finding
from dapr_runners.cli._reach import reach


def probe_findings(address: str, *, needs_engine: bool) -> Iterator[Finding]:
    """Whether a worker is connected to the sidecar at ``address``, asked once and not for long.

    Where ``needs_engine``, the sidecar has to be there and to run workflows. Otherwise what is
    wrong with it is no fault of the worker, and only a sidecar without one is a problem.
    """
    from dapr_runners.engine import missing_service_of

    metadata, trouble = reach(address)
    if metadata is None:
        if trouble is not None and needs_engine:
            yield trouble
        return
    missing = missing_service_of(metadata)
    if missing is not None and needs_engine:
        yield Finding(
            "engine",
            "problem",
            f"the sidecar cannot run workflows: {missing}",
            "`dapr-runners doctor` says more",
        )
    workers = metadata.workflows.connected_workers
    if workers > 0:
        yield Finding("worker", "ok", f"{workers} connected to the sidecar at {address}")
    elif missing is None or needs_engine:
        yield Finding(
            "worker",
            "problem",
            f"no worker is connected to the sidecar at {address}",
            "see that the program calls start() on its runners; its log says why it cannot",
        )
