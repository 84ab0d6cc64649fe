"""A real Dapr for tests: placement, scheduler, a store and any number of daprd, on loopback.

The binaries are those in the directory DAPR_BIN_DIR, or of ``dapr init --slim``. The component
files are the project's own. TEST_DAPR_STORE names the state store: ``sqlite`` (the default),
``redis`` or ``postgresql``, whose servers are started here.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from itertools import chain, cycle, islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import yaml

from dapr_store import Server, Store, store_named

_BINARIES = ("daprd", "placement", "scheduler")
_COMPONENTS = Path(__file__).parent.parent / "components"
_ACTORS = "internal.default.langgraph-agent."
"""What the Resiliency files of the project name: the namespace and the app id."""
_START_SECONDS = 60.0
_STOP_SECONDS = 15.0
_PORTS = 200
_first_port = 20000 + os.getpid() % 60 * _PORTS
_ports = cycle(range(_first_port, _first_port + _PORTS))


def find_dapr() -> Path | str:
    """The directory with the binaries, or why there is none."""
    named = os.environ.get("DAPR_BIN_DIR")
    place = Path(named) if named else Path.home() / ".dapr" / "bin"
    missing = [name for name in _BINARIES if not (place / name).is_file()]
    if not missing:
        return place
    where = "DAPR_BIN_DIR" if named else "set DAPR_BIN_DIR or run `dapr init --slim`"
    return f"no real Dapr: {place} has no {', '.join(missing)} ({where})"


def free_port() -> int:
    """A port nobody has, which stays so: it is none of those the system gives to connections, nor
    of those that another process of tests gives out."""
    for port in islice(_ports, _PORTS):
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


class Keeper:
    """A process that kills what is left, should the tests be killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, start_new_session=True
        )

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Service:
    """A process that is ready when ``is_ready`` says so; its output goes to ``log``."""

    def __init__(
        self,
        keeper: Keeper,
        command: list[str],
        log: Path,
        is_ready: Callable[[], bool],
        **popen: Any,
    ) -> None:
        self._keeper = keeper
        self._command = command
        self._log = log
        self._is_ready = is_ready
        self._popen = popen
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start it, and return once it is ready."""
        self.launch()
        self.wait_ready()

    def launch(self) -> None:
        """Start it."""
        assert self._process is None, f"{self._command[0]} runs already"
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **self._popen,
            )
        self._keeper.tell(f"+{self._process.pid}")

    def wait_ready(self) -> None:
        """Return once it is ready."""
        assert self._process is not None
        give_up_at = time.monotonic() + _START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                code = self._process.poll()
                self.kill()
                tail = self._log.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{self._command[0]} is not ready (exit {code}):\n{tail}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End it cleanly, at least in the end."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._reap()

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                # Its children as well: a database server has some.
                os.killpg(self._process.pid, signal.SIGKILL)
            self._reap()

    def wait(self) -> int:
        """Wait until it ends by itself; its exit code, negative for a signal."""
        process = self._process
        assert process is not None
        code = process.wait(_STOP_SECONDS)
        self._process = None
        return code

    def _reap(self) -> None:
        assert self._process is not None
        self._process.wait()
        self._keeper.tell(f"-{self._process.pid}")
        self._process = None


def healthy(url: str) -> Callable[[], bool]:
    """Whether ``url`` answers that all is well."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask() -> bool:
        with suppress(OSError), opener.open(url, timeout=2) as answer:
            return 200 <= answer.status < 300
        return False

    return ask


class Daprd:
    """A daprd, with the interface of :class:`dapr_runners.sidecar.EmbeddedSidecar`."""

    def __init__(
        self,
        dapr: "Dapr",
        app_id: str,
        directory: Path,
        options: Mapping[str, str],
        resources: Path | None,
        variables: Mapping[str, str],
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.app_id = app_id
        self.database = dapr.store.file(app_id)
        """The file of its state, where the store is one."""
        self.grpc_port, self.http_port = free_port(), free_port()
        self.log = directory / "daprd.log"
        metrics, internal = free_port(), free_port()
        resources = resources or dapr.resources(app_id, directory)
        defaults = {
            "--app-id": app_id,
            "--mode": "standalone",
            "--resources-path": str(resources),
            "--config": str(dapr.config),
            "--dapr-http-port": str(self.http_port),
            "--dapr-grpc-port": str(self.grpc_port),
            "--dapr-listen-addresses": "127.0.0.1",
            "--dapr-internal-grpc-port": str(internal),
            "--dapr-internal-grpc-listen-address": "127.0.0.1",
            "--metrics-port": str(metrics),
            "--metrics-listen-address": "127.0.0.1",
            "--placement-host-address": dapr.placement_address,
            "--scheduler-host-address": dapr.scheduler_address,
            "--dapr-graceful-shutdown-seconds": "2",
            "--log-level": "info",
        }
        command = [
            str(dapr.binaries / "daprd"),
            *chain.from_iterable({**defaults, **options}.items()),
        ]
        url = f"http://127.0.0.1:{self.http_port}/v1.0/healthz/outbound"
        # A namespace of its own: placement halts all sidecars of one while it tells them of a new
        # one.
        variables = {"NAMESPACE": app_id, **variables}
        self._service = dapr.service(command, self.log, healthy(url), **variables)

    @property
    def address(self) -> str:
        """``host:port`` of the gRPC endpoint."""
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._service.pid

    def env(self) -> dict[str, str]:
        """The variables a program needs to find it."""
        return {
            "APP_ID": self.app_id,
            "DAPR_GRPC_PORT": str(self.grpc_port),
            "DAPR_HTTP_PORT": str(self.http_port),
        }

    def start(self) -> Self:
        self._service.start()
        return self

    def stop(self) -> None:
        self._service.stop()

    def kill(self) -> None:
        self._service.kill()

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self if self.pid is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Dapr:
    """The services that sidecars share. Each sidecar that is asked for is an app of its own."""

    name = "daprd"

    def __init__(self, binaries: Path, directory: Path) -> None:
        self.binaries = binaries
        self._directory = directory
        self._stack = ExitStack()
        self._keeper = Keeper()
        self._stack.callback(self._keeper.close)
        self.store: Store = store_named(os.environ.get("TEST_DAPR_STORE", "sqlite"), directory)
        self.config = self._write_config()
        self.placement = self._placement()
        self.scheduler = self._scheduler()
        self.store_server = self._store_server()

    def sidecar(
        self,
        directory: Path,
        app_id: str | None = None,
        *,
        options: Mapping[str, str] | None = None,
        resources: Path | None = None,
        **variables: str,
    ) -> Daprd:
        """A daprd that is not started. Those of one ``app_id`` are replicas. ``options`` are
        used instead of those of their name, ``resources`` instead of the project's files."""
        named = app_id or f"test-{uuid4().hex[:12]}"
        made = Daprd(self, named, directory, options or {}, resources, variables)
        self._stack.callback(made.stop)
        return made

    def service(
        self, command: list[str], log: Path, is_ready: Callable[[], bool], **variables: str
    ) -> Service:
        """A process that does not outlive the tests."""
        environment = {**_environment(), "DAPR_HOST_IP": "127.0.0.1", **variables}
        return Service(self._keeper, command, log, is_ready, env=environment)

    def store_service(self, server: Server, log: Path) -> Service:
        """A store's server that does not outlive the tests."""
        return Service(self._keeper, server.command, log, server.is_ready, **server.popen)

    def resources(self, app_id: str, directory: Path) -> Path:
        """The project's component files for the store, for ``app_id``. A store that is no broker
        gets the one in memory."""
        place, metadata = directory / "components", self.store.metadata(app_id)
        place.mkdir(exist_ok=True)
        sources = {"pubsub.yaml": _COMPONENTS / "pubsub.yaml"}
        sources |= {
            each.name: each for each in (_COMPONENTS / self.store.components).glob("*.yaml")
        }
        for source in sources.values():
            text = source.read_text().replace(_ACTORS, f"internal.{app_id}.{app_id}.")
            found: dict[str, Any] = yaml.safe_load(text)
            if source.name == "pubsub.yaml":
                found["spec"]["ignoreErrors"] = True  # a daprd may be built without this broker
            for each in found["spec"].get("metadata", ()):
                if each["name"] in metadata:
                    each.pop("secretKeyRef", None)
                    each["value"] = metadata[each["name"]]
            (place / source.name).write_text(yaml.safe_dump(found))
        return place

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self._stack.close)
            services = [self.placement, self.scheduler]
            services += filter(None, [self.store_server])
            for service in services:
                self._stack.callback(service.stop)
                service.launch()
            for service in services:
                service.wait_ready()
            stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _write_config(self) -> Path:
        config: dict[str, Any] = yaml.safe_load((_COMPONENTS / "config/config.yaml").read_text())
        # The default, mDNS, would announce the tests on the network.
        config["spec"]["nameResolution"] = {"component": "kubernetes", "version": "v1"}
        path = self._directory / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        return path

    def _placement(self) -> Service:
        port, raft, health, metrics = (free_port() for _ in range(4))
        self.placement_address = f"127.0.0.1:{port}"
        command = [
            str(self.binaries / "placement"),
            *("--id", "placement-0", "--initial-cluster", f"placement-0=127.0.0.1:{raft}"),
            *("--port", str(port), "--listen-address", "127.0.0.1"),
            *("--healthz-port", str(health), "--healthz-listen-address", "127.0.0.1"),
            *("--metrics-port", str(metrics), "--metrics-listen-address", "127.0.0.1"),
        ]
        url = f"http://127.0.0.1:{health}/healthz"
        return self.service(command, self._directory / "placement.log", healthy(url))

    def _scheduler(self) -> Service:
        port, client, peer, health, metrics = (free_port() for _ in range(5))
        self.scheduler_address = f"127.0.0.1:{port}"
        data = self._directory / "scheduler"
        data.mkdir(mode=0o700)
        command = [
            str(self.binaries / "scheduler"),
            *("--id", "scheduler-0", "--etcd-data-dir", str(data)),
            *("--port", str(port), "--listen-address", "127.0.0.1"),
            *("--override-broadcast-host-port", self.scheduler_address),
            *("--etcd-client-port", str(client), "--etcd-client-listen-address", "localhost"),
            *("--etcd-initial-cluster", f"scheduler-0=http://localhost:{peer}"),
            *("--identity-directory-write", str(self._directory / "identity")),
            *("--healthz-port", str(health), "--healthz-listen-address", "127.0.0.1"),
            *("--metrics-port", str(metrics), "--metrics-listen-address", "127.0.0.1"),
        ]
        url = f"http://127.0.0.1:{health}/healthz"
        return self.service(command, self._directory / "scheduler.log", healthy(url))

    def _store_server(self) -> Service | None:
        server = self.store.server(free_port())
        if server is None:
            return None
        return self.store_service(server, self._directory / "store.log")


def _environment() -> dict[str, str]:
    """Without what a Dapr around the tests says."""
    return {name: value for name, value in os.environ.items() if not name.startswith("DAPR_")}


def keep() -> None:
    """Be a :class:`Keeper`'s process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    alive: set[int] = set()
    for line in sys.stdin:
        (alive.add if line[0] == "+" else alive.discard)(int(line[1:]))
    for pid in alive:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    keep()
