"""Opens what commands read runs with."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dapr_runners.cli._options import told_of_errors
from dapr_runners.cli._sidecar import address_of

if TYPE_CHECKING:
    from dapr_runners.engine import Overview

_PATIENCE = 3.0


@contextmanager
def overview(store_name: str, port: int | None) -> "Generator[Overview]":
    """The runs of a sidecar. What is wrong is said, and ends the command with status 1."""
    from dapr_runners.engine import BlockingIO, Overview, PatientIO, Worker
    from dapr_runners.state import AllowList, Codec, StateStore

    with told_of_errors():
        address = address_of(port)
        worker = Worker(address)
        worker.probe()
        store = StateStore(store_name, address=address)
        io = PatientIO(BlockingIO(store), address, _PATIENCE)
        try:
            yield Overview(io, worker.client, Codec(AllowList()), address)
        finally:
            store.close()
            worker.client.close()
