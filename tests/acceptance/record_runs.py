"""Record runs that are not over, for ``test_recorded_runs``::

    python tests/acceptance/record_runs.py

Do it for a release, and keep what older ones recorded: their runs must end on newer ones, too.
Until there is a release, a changed format may be recorded anew.
"""

import gzip
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from harness.cluster import Cluster
from harness.effects import EffectsService
from harness.processes import start_fork_server
from langgraph.types import Command

from dapr_runners import __version__
from dapr_runners.sidecar import EmbeddedSidecar

HERE = Path(__file__).parent
DIES_IN = {"left": 1, "check": 2}
"""The node in which the worker died, and the turn of its run."""


def record(name: str, turn: int, directory: Path, service: EffectsService) -> None:
    """Write the database of a run that died in the node ``name``."""
    with EmbeddedSidecar(directory / f"{name}.db") as sidecar:
        cluster = Cluster(sidecar, service.case(name), directory)
        cluster.use("upgrade_graphs:whole")
        cluster.effects.arm(f"{name} in", "die")
        worker, caller = cluster.worker(), cluster.caller()
        caller.send("call", "thread", {"log": ["input"], "messages": [("user", "hello")]})
        if turn == 2:
            caller.reply()
            caller.send("call", "thread", Command(resume="yes"))
        worker.wait_dead()
        cluster.close()
    copy = directory / f"{name}.copy"
    with closing(sqlite3.connect(directory / f"{name}.db")) as database:
        database.execute("VACUUM INTO ?", (str(copy),))
    target = HERE / "recorded" / f"{__version__}-{name}.db.gz"
    target.write_bytes(gzip.compress(copy.read_bytes(), mtime=0))


def main() -> None:
    """Record all."""
    start_fork_server(["harness.program"])
    with tempfile.TemporaryDirectory(prefix="dapr-runners-") as name:
        directory = Path(name)
        with EffectsService(directory) as service:
            for node, turn in DIES_IN.items():
                record(node, turn, directory, service)


if __name__ == "__main__":
    main()
