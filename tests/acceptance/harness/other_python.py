"""Workers on another version of a framework: an interpreter of their own, in a virtual environment
made once."""

import os
import socket
import subprocess
import sys
import sysconfig
import venv
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.processes import WorkerProcess, serve


class InstallError(Exception):
    """The packages cannot be had: there is no registry, say."""


def python_with(packages: list[str], directory: Path) -> Path:
    """The interpreter of an environment in ``directory`` that has ``packages`` in front of all
    that this one has. It is made when it is first asked for."""
    name = "-".join(sorted(packages)).replace("==", "-")
    home = directory / f"{name}-{sys.version_info.major}.{sys.version_info.minor}"
    python = home / "bin" / "python"
    if (home / "complete").exists():
        return python
    venv.create(home, clear=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    install = [*pip, "install", "--quiet", "--no-deps", "--disable-pip-version-check", *packages]
    made = subprocess.run(install, capture_output=True, text=True)
    if made.returncode:
        raise InstallError(made.stderr.strip())
    # Only now: pip would take what it sees there for its own.
    here = sysconfig.get_path("purelib")
    (site,) = (home / "lib").glob("python*/site-packages")
    (site / "the-rest.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    (home / "complete").touch()
    return python


class OtherPythonProcess(WorkerProcess):
    """A worker process on another interpreter."""

    def __init__(self, python: Path, program: str, settings: dict[str, Any], log: Path) -> None:
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        self.log = log
        with theirs:
            self._popen = subprocess.Popen(
                [str(python), "-m", "harness.other_python", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": _search_path()},
            )
        self._connection.send((program, settings, log))

    @property
    def pid(self) -> int:
        return self._popen.pid

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()
        self._connection.close()

    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def wait_dead(self, seconds: float = 60) -> None:
        self._popen.wait(seconds)


def _search_path() -> str:
    """Where the tests' own modules are, before what the environment says."""
    here = str(Path(__file__).parent.parent)
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


if __name__ == "__main__":
    connection = Connection(int(sys.argv[1]))
    serve(connection, *connection.recv())
