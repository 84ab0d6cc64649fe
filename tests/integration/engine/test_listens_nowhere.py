"""A runner listens on no port, so there is nothing to protect with APP_API_TOKEN."""

import os
import socket
from contextlib import suppress
from pathlib import Path

import encrypted_graphs
import pytest

from engines import Sidecar
from worker_processes import WorkerProcess

_LISTENS = "0A"


def _listening(pid: int) -> list[str]:
    """Addresses that a process listens on, in the kernel's notation."""
    own: set[str] = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            link = str(fd.readlink())
            if link.startswith("socket:["):
                own.add(link.removeprefix("socket:[").removesuffix("]"))
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
