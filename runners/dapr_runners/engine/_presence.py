"""Whether anybody works for the app of a sidecar, for who waits for a run."""

import grpc

from dapr_runners.engine._attempts import is_dead
from dapr_runners.engine._metadata import sidecar_metadata
from dapr_runners.engine._roster import roster
from dapr_runners.errors import DaprRunnersError
from dapr_runners.state import StateStore

_SECONDS = 2.0


def is_worker_there(store: StateStore) -> bool | None:
    """Whether a worker is connected to the sidecar that ``store`` is behind, or a process says that
    it works for the app beside another sidecar. None where that cannot be found out now. One whose
    host died counts for as long as its last word does (see ``_roster``)."""
    try:
        if sidecar_metadata(store.address, _SECONDS).workflows.connected_workers > 0:
            return True
        return not all(is_dead(member.process) for member in roster(store))
    except (grpc.RpcError, DaprRunnersError):
        return None
