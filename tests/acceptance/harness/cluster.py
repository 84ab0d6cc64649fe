"""Workers and callers of one graph, on one sidecar."""

from pathlib import Path
from typing import Any

from dapr.ext.workflow import DaprWorkflowClient, WorkflowHistoryEvent

from dapr_runners.engine._keys import run_id
from engines import Sidecar
from harness.effects import Effects
from harness.other_python import OtherPythonProcess
from harness.processes import WorkerProcess
from state_files import stored


class Cluster:
    """Starts processes of one program, all in the same case, and ends them with the test."""

    def __init__(self, sidecar: Sidecar, effects: Effects, directory: Path) -> None:
        self.sidecar = sidecar
        self.effects = effects
        self._directory = directory
        self._processes: list[WorkerProcess] = []
        self._settings: dict[str, Any] = {}

    def use(
        self, graph: str, is_async: bool = False, *, points: bool = False, **options: Any
    ) -> None:
        """What the processes run: ``graph`` is ``module:factory``, ``options`` are the runner's.
        ``points`` are those of ``harness.hooks``."""
        self._settings = {
            "graph": graph,
            "is_async": is_async,
            "points": points,
            "options": options,
            "program": "program",
            "name": "acceptance",
            "address": self.sidecar.address,
            "effects": self.effects.path,
            "case": self.effects.case,
        }

    def use_crew(
        self,
        factory: str,
        *,
        points: bool = False,
        program: str = "crew_program",
        **options: Any,
    ) -> None:
        """What the processes run: ``factory`` is ``module:function``, called with the outside."""
        self.use(factory, points=points, **options)
        self._settings["program"] = program

    def worker(self, **other: Any) -> WorkerProcess:
        """A process that works on runs."""
        return self._start("worker", other)

    def server(self, grace: float = 60) -> WorkerProcess:
        """A process that serves until it gets a signal, and then answers."""
        told = self.effects.count("serving")
        worker = self.worker()
        worker.send("serve", grace)
        self.effects.wait("serving", told + 1)
        return worker

    def caller(self, **other: Any) -> WorkerProcess:
        """A process that only calls."""
        return self._start("caller", other)

    def run_of(self, thread: str, turn: int = 1) -> str:
        """The id of a run."""
        return run_id(self._settings["name"], thread, turn)

    def close(self) -> None:
        """Kill all processes."""
        for process in self._processes:
            process.kill()

    def worker_on(self, python: Path) -> WorkerProcess:
        """A process that works on runs, on another interpreter."""
        log = self._directory / f"process-{len(self._processes)}.log"
        settings = {**self._settings, "role": "worker"}
        process = OtherPythonProcess(
            python, f"harness.{settings['program']}:Program", settings, log
        )
        self._processes.append(process)
        return process.ready(90)  # it has everything to import

    def _start(self, role: str, other: dict[str, Any]) -> WorkerProcess:
        log = self._directory / f"process-{len(self._processes)}.log"
        settings = {**self._settings, **other, "role": role}
        process = WorkerProcess(f"harness.{settings['program']}:Program", settings, log)
        self._processes.append(process)
        return process.ready()

    def stored(self, part: str = "") -> dict[str, bytes]:
        """What is in the state store, by key: what has ``part`` in its key."""
        return {key: value for key, value in stored(self.sidecar).items() if part in key}

    def history(self, run: str) -> list[WorkflowHistoryEvent]:
        """The history of a run's workflow."""
        client = DaprWorkflowClient(host="127.0.0.1", port=str(self.sidecar.grpc_port))
        try:
            return client.get_workflow_history(run)
        finally:
            client.close()
