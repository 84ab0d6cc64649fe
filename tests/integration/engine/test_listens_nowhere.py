"""A runner listens on no port, so there is nothing to protect with APP_API_TOKEN."""

import os
import socket
from pathlib import Path

import encrypted_graphs
import pytest

from engines import Sidecar
from worker_processes import WorkerProcess

_LISTENS = "0A"


def _listening(pid: int) -> list[str]:
    """Addresses that a process listens on, in the kernel's notation."""
    own = {
        link.removeprefix("socket:[").removesuffix("]")
        for fd in Path(f"/proc/{pid}/fd").iterdir()
        if (link := str(fd.readlink())).startswith("socket:[")
    }
    assert own
    lines = [
        line.split()
        for family in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]
    ]
    return [fields[1] for fields in lines if fields[3] == _LISTENS and fields[9] in own]


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="sockets are not told here")
def test_a_worker_listens_nowhere(sidecar: Sidecar) -> None:
    with socket.create_server(("127.0.0.1", 0)):
        assert _listening(os.getpid())
    folder = Path(encrypted_graphs.__file__).parent
    worker = WorkerProcess(folder, "encrypted_graphs:runners", variables=sidecar.env())
    with worker:
        assert _listening(worker.pid) == []
